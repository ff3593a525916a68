internal import Glibc

/// The life of a process, which tells it from all others that have had its number.
enum ProcessLife {
    /// Returns a checksum of the starts of the machine and of the process; 0 if there is no such process, or if it has
    /// ended.
    static func sum(of process: Int) -> UInt64 {
        // The name of the program, in parentheses, may contain anything.
        let fields = text(of: "/proc/\(process)/stat").split(separator: ")").last?.split(separator: " ") ?? []
        guard fields.count > 19, !["Z", "X"].contains(fields[0]) else { return 0 }
        let identity = text(of: "/proc/sys/kernel/random/boot_id") + fields[19]
        var check = TapeCheck()
        Array(identity.utf8).withUnsafeBytes { check.add($0) }
        return check.value
    }

    private static func text(of path: String) -> String {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return "" }
        defer { close(descriptor) }
        let bytes = [UInt8](unsafeUninitializedCapacity: 4096) { room, count in
            count = max(0, read(descriptor, room.baseAddress, room.count))
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
