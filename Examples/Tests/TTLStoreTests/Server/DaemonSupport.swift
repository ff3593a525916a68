import ExampleTestSupport
import Glibc
import RunLoopKit
import RunLoopUnix
import Testing

/// Runs a program to its end on the calling thread's loop.
///
/// - Returns: the program's status, standard output and standard error.
func run(
    _ program: String, _ arguments: [String], environment: [String: String]? = nil
) throws -> (status: ChildProcess.ExitStatus, output: String, errors: String) {
    let child = try ChildProcess.spawn(
        .named(program), arguments: arguments, environment: environment.map { .only($0) } ?? .inherit,
        standardInput: .null, standardOutput: .pipe, standardError: .pipe)
    // A mode of its own: other tests of the thread may have left something in the default mode.
    let (loop, mode) = (RunLoop.current, RunLoop.Mode("running a program"))
    let texts = [Text(), Text()]
    for (pipe, text) in zip([child.standardOutput!, child.standardError!], texts) {
        let reading = DescriptorSource(fileDescriptor: pipe.fileDescriptor, events: .readable) { source, _ in
            switch try? pipe.read() {
            case .bytes(let bytes): text.bytes += bytes
            case .nothing: break
            case .end, nil:
                source.invalidate()
                pipe.close()
            }
        }
        try loop.add(reading, forMode: RunLoop.Modes(mode))
    }
    var status: ChildProcess.ExitStatus?
    try loop.add(ChildSource(child) { status = $1 }, forMode: RunLoop.Modes(mode))
    loop.run(in: mode)
    return (try #require(status), texts[0].string, texts[1].string)
}

private final class Text {
    var bytes: [UInt8] = []
    var string: String { String(decoding: bytes, as: UTF8.self) }
}

/// A TTLStore that listens on a Unix socket.
final class StoreUnderTest {
    let path: String
    let snapshot: String
    let changes: String
    private let logPath: String
    private let child: ChildProcess

    /// - Parameters:
    ///   - logs: the sync policy of a log of changes; `nil` for no log.
    ///   - errors: the standard error; `nil` for a file.
    ///   - shell: commands of a shell before it becomes the daemon, such as `ulimit -n 40`.
    init(
        name: String, arguments: [String] = [], logs: String? = nil, errors: Int32? = nil, shell: String? = nil
    ) throws {
        path = StoreUnderTest.path(of: name)
        snapshot = path + ".snapshot"
        changes = StoreUnderTest.changes(of: name)
        logPath = path + ".log"
        let logFile = open(logPath, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        defer { close(logFile) }
        let options =
            ["--port", "0", "--unix", path, "--log-level", "warning"] + arguments
            + (logs.map { [changes] in ["--log", changes, "--fsync", $0] } ?? ["--snapshot", snapshot])
        let program = StoreUnderTest.program
        if let shell {
            let words = [program] + options
            child = try .spawn(
                .path("/bin/sh"), arguments: ["-c", "\(shell); exec \(words.joined(separator: " "))"],
                standardInput: .null, standardError: .descriptor(logFile))
        } else {
            child = try .spawn(
                .path(program), arguments: options, standardInput: .null,
                standardError: .descriptor(errors ?? logFile))
        }
        // The store listens once a connection succeeds.
        for _ in 0..<2_000 {
            if let probe = try? Client(path) {
                probe.close()
                return
            }
            usleep(5_000)
        }
        throw SystemError("wait for \(program) to listen, which says: \(log)", errno: ETIMEDOUT)
    }

    private static func path(of name: String) -> String { "/tmp/rlk-store-\(getpid())-\(name)" }

    /// Returns the path of the log of the store with this name.
    static func changes(of name: String) -> String { path(of: name) + ".changes" }

    deinit {
        _ = try? child.kill(.kill)
        // A sanitizer checks the daemon, too.
        #expect(!log.contains("Sanitizer"), "\(log)")
        for file in [path, logPath, snapshot + ".lock"] { unlink(file) }
    }

    static let program = pathOfProgram("TTLStore")

    func kill(_ signal: Signal) throws {
        _ = try child.kill(signal)
    }

    /// Waits until the daemon has ended.
    func wait() throws -> ChildProcess.ExitStatus {
        let loop = RunLoop.current
        var status: ChildProcess.ExitStatus?
        try loop.add(ChildSource(child) { status = $1 }, forMode: .default)
        loop.run()
        return try #require(status)
    }

    var processIdentifier: Int32 { child.processIdentifier }

    /// Limits the length of the files that the daemon writes, in bytes: the kernel refuses more, as on a full disk.
    func limitFiles(to size: String) throws {
        let (status, _, errors) = try run("prlimit", ["--pid", "\(processIdentifier)", "--fsize=\(size):"])
        #expect(status == .exited(0), "\(errors)")
    }

    /// The log so far.
    var log: String { contents(of: logPath) }

    /// Waits until a log line contains the text; returns `false` if none does.
    func logs(_ text: String) -> Bool {
        for _ in 0..<2_000 {
            if log.contains(text) { return true }
            usleep(10_000)
        }
        return false
    }

    func cli(_ arguments: String...) throws -> String {
        let (status, output, _) = try run("redis-cli", ["-s", path] + arguments)
        #expect(status == .exited(0), "redis-cli \(arguments)")
        return output
    }

    /// The processor time that the daemon has used, in user code and in the kernel.
    var processorTime: Duration {
        // The fields after the name, which may contain anything except a closing parenthesis behind it.
        let fields = contents(of: "/proc/\(child.processIdentifier)/stat").split(separator: ")").last?
            .split(separator: " ")
        let ticks = (fields?.dropFirst(11).prefix(2) ?? []).compactMap { Int($0) }.reduce(0, +)
        return .seconds(1) * ticks / sysconf(Int32(_SC_CLK_TCK))
    }

    /// The names of the daemon's threads.
    var threads: [String] {
        guard let directory = opendir("/proc/\(child.processIdentifier)/task") else { return [] }
        defer { closedir(directory) }
        var names: [String] = []
        while let entry = readdir(directory) {
            let task = withUnsafeBytes(of: entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            let name = contents(of: "/proc/\(child.processIdentifier)/task/\(task)/comm")
            if !name.isEmpty { names.append(String(name.dropLast())) }
        }
        return names
    }

    /// The largest number of bytes of memory that the process has had in use.
    var peakMemory: Int {
        let line = contents(of: "/proc/\(child.processIdentifier)/status").split(separator: "\n")
            .first { $0.hasPrefix("VmHWM:") }
        return (line?.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { Int($0) } ?? 0) * 1024
    }

    /// The number of bytes of memory that the process has in use.
    var memory: Int {
        let words = contents(of: "/proc/\(child.processIdentifier)/statm").split(separator: " ")
        return (words.count > 1 ? Int(words[1]) ?? 0 : 0) * Int(sysconf(Int32(_SC_PAGESIZE)))
    }
}

/// A blocking client on a Unix socket.
struct Client {
    let descriptor: Int32

    init(_ path: String) throws {
        let address = try Endpoint(path: path)
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

    /// Requests the storage of a value of any length.
    func set(_ key: String, _ value: String) {
        send("*3\r\n$3\r\nSET\r\n$\(key.utf8.count)\r\n\(key)\r\n$\(value.utf8.count)\r\n\(value)\r\n")
    }

    /// Ends the output.
    func end() {
        shutdown(descriptor, Int32(SHUT_WR))
    }

    /// Returns the next `count` bytes, or fewer at the end of the stream.
    func receive(_ count: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while bytes.count < count {
            let received = recv(descriptor, &buffer, min(buffer.count, count - bytes.count), 0)
            guard received > 0 else { break }
            bytes += buffer[..<received]
        }
        return bytes
    }

    /// `true` if a reply has arrived.
    var hasReply: Bool {
        var byte: UInt8 = 0
        return recv(descriptor, &byte, 1, Int32(MSG_PEEK | MSG_DONTWAIT)) > 0
    }

    /// Returns the value of a field of INFO.
    func information(_ name: String) throws -> Substring {
        send("INFO\r\n")
        // The length, and an end of line after the text.
        var head = ""
        while !head.hasSuffix("\r\n") { head += String(decoding: receive(1), as: UTF8.self) }
        let length = try #require(Int(head.dropFirst().dropLast()))
        let lines = String(decoding: receive(length + 2), as: UTF8.self).split(whereSeparator: \.isNewline)
        return try #require(lines.first { $0.hasPrefix(name + ":") }).dropFirst(name.count + 1)
    }

    /// Waits until a field of INFO has a value; returns `false` if it never does.
    func information(_ name: String, becomes value: String) throws -> Bool {
        for _ in 0..<2_000 {
            if try information(name) == value { return true }
            usleep(5_000)
        }
        return false
    }

    /// Returns the next line; `nil` at the end of the stream.
    func receive() -> String? {
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        let count = recv(descriptor, &buffer, buffer.count, 0)
        return count > 0 ? String(decoding: buffer[..<count], as: UTF8.self) : nil
    }
}

extension Endpoint {
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
