/// The names of directories, and the directories of a new machine.
enum Directories {
    /// The directories of a new machine.
    static let usual = [
        "/bin", "/data", "/dev", "/etc", "/home", "/opt", "/proc", "/root", "/run", "/srv", "/state", "/sys", "/tmp",
        "/usr/bin", "/usr/lib", "/usr/local/bin", "/usr/share", "/var/cache", "/var/lib", "/var/log", "/var/run",
        "/var/spool", "/var/tmp",
    ]

    /// The permissions of directories that not all users may read, or in which all may write.
    static let permissions: [(path: String, permissions: UInt32)] = [
        ("/root", 0o700), ("/tmp", 0o1777), ("/var/tmp", 0o1777),
    ]

    /// Returns the canonical path from the root, among all that lead to the same place.
    static func name(_ path: String) -> String {
        var parts: [Substring] = []
        for part in path.split(separator: "/") where part != "." {
            if part == ".." { _ = parts.popLast() } else { parts.append(part) }
        }
        return "/" + parts.joined(separator: "/")
    }

    /// Returns the path from the root of a path in `directory`.
    static func absolute(_ path: String, from directory: String) -> String {
        path.hasPrefix("/") ? path : directory.hasSuffix("/") ? directory + path : "\(directory)/\(path)"
    }

    /// Returns the directory of a path's last component.
    static func parent(of path: String) -> String { name("\(path)/..") }

    /// Returns a path's last component; empty for the root.
    static func lastName(of path: String) -> String { String(name(path).split(separator: "/").last ?? "") }
}
