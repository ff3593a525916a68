internal import RunLoopUnix

/// The users and groups of a machine, from its `/etc/passwd` and `/etc/group`.
struct Accounts {
    /// The contents of `/etc/passwd`; without that file there is root.
    let users: [UInt8]
    private let groups: [UInt8]

    init(on disk: SimulatedDisk) {
        users = disk.contents(of: "/etc/passwd") ?? Array("root:x:0:0:root:/root:/bin/sh\n".utf8)
        groups = disk.contents(of: "/etc/group") ?? []
    }

    /// Returns the user with a name, with all groups; `nil` if there is none.
    func user(named name: String) -> ChildProcess.User? {
        let lines = Self.lines(of: users).lazy.filter { $0.count == 7 && $0[0] == name }
        guard let line = lines.first, let number = UInt32(line[2]), let group = UInt32(line[3]) else { return nil }
        let others = Self.lines(of: groups).compactMap { line in
            line.count == 4 && line[3].split(separator: ",").contains(name[...]) ? UInt32(line[2]) : nil
        }
        return ChildProcess.User(number, group: group, supplementaryGroups: [group] + others.filter { $0 != group })
    }

    private static func lines(of bytes: [UInt8]) -> [[Substring]] {
        String(decoding: bytes, as: UTF8.self).split(separator: "\n").map {
            $0.split(separator: ":", omittingEmptySubsequences: false)
        }
    }
}
