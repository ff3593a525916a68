import Glibc

/// A pipe whose ends are closed when it goes, unless they were closed before.
final class Pipe {
    private(set) var readEnd: Int32
    private(set) var writeEnd: Int32

    init() {
        var ends: [Int32] = [-1, -1]
        precondition(pipe(&ends) == 0, "no pipe (errno \(errno))")
        (readEnd, writeEnd) = (ends[0], ends[1])
        for end in ends { _ = fcntl(end, F_SETFL, O_NONBLOCK) }
    }

    deinit {
        closeReadEnd()
        closeWriteEnd()
    }

    func write(_ count: Int = 1) {
        let bytes = [UInt8](repeating: 7, count: count)
        precondition(Glibc.write(writeEnd, bytes, count) == count, "the pipe is full")
    }

    /// Writes until the pipe takes no more.
    func fill() {
        let bytes = [UInt8](repeating: 7, count: 4096)
        while Glibc.write(writeEnd, bytes, bytes.count) > 0 {}
    }

    /// Reads until the pipe has no more.
    func drain() {
        var bytes = [UInt8](repeating: 0, count: 4096)
        while read(readEnd, &bytes, bytes.count) > 0 {}
    }

    func closeReadEnd() {
        if readEnd >= 0 { close(readEnd) }
        readEnd = -1
    }

    func closeWriteEnd() {
        if writeEnd >= 0 { close(writeEnd) }
        writeEnd = -1
    }
}

/// Two connected stream sockets, closed when they go.
final class SocketPair {
    let left: Int32
    private(set) var right: Int32

    init() {
        var ends: [Int32] = [-1, -1]
        let status = socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends)
        precondition(status == 0, "no sockets (errno \(errno))")
        (left, right) = (ends[0], ends[1])
    }

    deinit {
        close(left)
        closeRight()
    }

    func write(_ count: Int = 1) {
        let bytes = [UInt8](repeating: 7, count: count)
        precondition(Glibc.write(right, bytes, count) == count, "the socket is full")
    }

    func closeRight() {
        if right >= 0 { close(right) }
        right = -1
    }
}

/// How many descriptors the process has open.
func openDescriptors() -> Int {
    guard let directory = opendir("/proc/self/fd") else { return -1 }
    defer { closedir(directory) }
    var count = 0
    while readdir(directory) != nil { count += 1 }
    // Without `.`, `..`, and the descriptor that reads the directory.
    return count - 3
}
