import Glibc
import RunLoopKit
import RunLoopUnix
import Testing

/// Runs a program to its end on the calling thread's loop.
///
/// - Returns: how it ended, and what it printed on its standard output.
func run(_ program: String, _ arguments: [String]) throws -> (status: ChildProcess.ExitStatus, output: String) {
    let child = try ChildProcess.spawn(
        .named(program), arguments: arguments, standardInput: .null, standardOutput: .pipe, standardError: .null)
    let loop = RunLoop.current
    let output = child.standardOutput!
    var text: [UInt8] = []
    let reading = DescriptorSource(fileDescriptor: output.fileDescriptor, events: .readable) { source, _ in
        switch try? output.read() {
        case .bytes(let bytes): text += bytes
        case .nothing: break
        case .end, nil:
            source.invalidate()
            output.close()
        }
    }
    try loop.add(reading, forMode: .default)
    var status: ChildProcess.ExitStatus?
    try loop.add(ChildSource(child) { status = $1 }, forMode: .default)
    loop.run()
    return (try #require(status), String(decoding: text, as: UTF8.self))
}

/// A TTLStore that listens on a Unix socket.
final class StoreUnderTest {
    let path: String
    let snapshot: String
    private let child: ChildProcess

    init(name: String, arguments: [String] = [], descriptors: Int? = nil) throws {
        path = "/tmp/rlk-store-\(getpid())-\(name)"
        snapshot = path + ".snapshot"
        let options =
            ["--port", "0", "--unix", path, "--snapshot", snapshot, "--log-level", "warning"] + arguments
        let program = StoreUnderTest.program
        if let descriptors {
            let words = [program] + options
            child = try .spawn(
                .path("/bin/sh"),
                arguments: ["-c", "ulimit -n \(descriptors); exec \(words.joined(separator: " "))"],
                standardInput: .null)
        } else {
            child = try .spawn(.path(program), arguments: options, standardInput: .null)
        }
        // It listens when somebody can connect.
        for _ in 0..<2_000 {
            if let probe = try? Client(path) {
                probe.close()
                return
            }
            usleep(5_000)
        }
        throw SystemError("wait for \(program) to listen", errno: ETIMEDOUT)
    }

    deinit {
        _ = try? child.kill(.kill)
        unlink(path)
    }

    /// Beside the tests' own program.
    static let program: String = {
        var buffer = [UInt8](repeating: 0, count: 4096)
        let count = readlink("/proc/self/exe", &buffer, buffer.count)
        let own = String(decoding: buffer.prefix(max(0, count)), as: UTF8.self)
        return own[..<(own.lastIndex(of: "/") ?? own.startIndex)] + "/TTLStore"
    }()

    func kill(_ signal: Signal) throws {
        _ = try child.kill(signal)
    }

    /// Waits until it has ended.
    func wait() throws -> ChildProcess.ExitStatus {
        let loop = RunLoop.current
        var status: ChildProcess.ExitStatus?
        try loop.add(ChildSource(child) { status = $1 }, forMode: .default)
        loop.run()
        return try #require(status)
    }

    func cli(_ arguments: String...) throws -> String {
        let (status, output) = try run("redis-cli", ["-s", path] + arguments)
        #expect(status == .exited(0), "redis-cli \(arguments)")
        return output
    }

    /// Bytes of memory that the process has in use.
    var memory: Int {
        let descriptor = open("/proc/\(child.processIdentifier)/statm", O_RDONLY)
        defer { close(descriptor) }
        var buffer = [UInt8](repeating: 0, count: 256)
        let count = read(descriptor, &buffer, buffer.count)
        let words = String(decoding: buffer.prefix(max(0, count)), as: UTF8.self).split(separator: " ")
        return (words.count > 1 ? Int(words[1]) ?? 0 : 0) * Int(sysconf(Int32(_SC_PAGESIZE)))
    }
}

/// A blocking client on a Unix socket.
struct Client {
    let descriptor: Int32

    init(_ path: String) throws {
        let address = try SocketAddress(path: path)
        descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard address.connects(descriptor) else {
            let reason = errno
            Glibc.close(descriptor)
            throw SystemError("connect to \(path)", errno: reason)
        }
    }

    func close() {
        Glibc.close(descriptor)
    }

    @discardableResult
    func send(_ text: String) -> Bool {
        let bytes = Array(text.utf8)
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress! + sent, $0.count - sent, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { return false }
            sent += count
        }
        return true
    }

    /// What comes next; `nil` at the end of the stream.
    func receive() -> String? {
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        let count = recv(descriptor, &buffer, buffer.count, 0)
        return count > 0 ? String(decoding: buffer[..<count], as: UTF8.self) : nil
    }
}

extension SocketAddress {
    fileprivate func connects(_ descriptor: Int32) -> Bool {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Array((path ?? "").utf8)) }
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0
            }
        }
    }
}
