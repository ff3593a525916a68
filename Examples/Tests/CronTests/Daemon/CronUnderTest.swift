import ExampleTestSupport
import Glibc
import RunLoopKit
import RunLoopUnix
import Testing

/// A Cron with files in a directory of its own.
final class CronUnderTest {
    let directory: TemporaryDirectory
    private let child: ChildProcess

    static let program = pathOfProgram("Cron")

    /// - Parameters:
    ///   - table: the contents of the file of jobs.
    ///   - directory: the directory of an earlier instance, to continue with its files.
    init(
        _ table: String, _ arguments: [String] = [], in directory: TemporaryDirectory = TemporaryDirectory(),
        environment: [String: String?] = [:]
    ) throws {
        self.directory = directory
        directory.write(table, to: "jobs")
        let logFile = open(directory["log"], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        defer { close(logFile) }
        child = try .spawn(
            .path(Self.program),
            arguments: [
                "--jobs", directory["jobs"], "--control", directory["control"], "--state", directory["state"],
                "--zone", "Europe/Berlin", "--grace", "100ms",
            ] + arguments,
            environment: .updating(environment.merging(["OUT": directory["out"]]) { first, _ in first }),
            standardInput: .null, standardError: .descriptor(logFile))
        // Cron listens once a connection succeeds.
        try #require(becomes { (try? ask("status"))?.last == "OK" }, "\(log)")
    }

    deinit {
        _ = try? child.kill(.kill)
        // A sanitizer checks the daemon, too.
        #expect(!log.contains("Sanitizer"), "\(log)")
    }

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

    /// The log so far.
    var log: String { contents(of: directory["log"]) }

    /// The lines that the daemon's jobs have written into the file `$OUT`.
    var out: [String] { contents(of: directory["out"]).split(separator: "\n").map(String.init) }

    // MARK: Its control socket

    /// Sends a command, and returns the lines of the answer.
    func ask(_ command: String) throws -> [String] {
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        defer { close(descriptor) }
        guard withAddress(directory["control"], { connect(descriptor, $0, $1) }) == 0 else {
            throw SystemError("connect", errno: errno)
        }
        let line = Array((command + "\n").utf8)
        try #require(Glibc.send(descriptor, line, line.count, Int32(MSG_NOSIGNAL)) == line.count)
        shutdown(descriptor, Int32(SHUT_WR))
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while case let count = recv(descriptor, &buffer, buffer.count, 0), count > 0 { bytes += buffer[..<count] }
        return String(decoding: bytes, as: UTF8.self).split(separator: "\n").map(String.init)
    }

    /// Runs a job.
    func run(_ name: String, sourceLocation: SourceLocation = #_sourceLocation) throws {
        #expect(try ask("run \(name)") == ["OK"], sourceLocation: sourceLocation)
    }

    /// Returns the entry of a job in `list`, without its name and next date: `idle runs=1 failed=0 skipped=0 missed=0`,
    /// for example.
    func state(of name: String) throws -> String? {
        try ask("list").first { $0.hasPrefix(name + " ") }?.split(separator: " ").dropFirst()
            .filter { !$0.hasPrefix("next=") }.joined(separator: " ")
    }

    /// Waits until the entry of a job in `list` begins with a text.
    func waits(for state: String, of name: String, sourceLocation: SourceLocation = #_sourceLocation) throws {
        let isSo = becomes { (try? self.state(of: name))?.hasPrefix(state) == true }
        #expect(isSo, "\(name) is not \(state):\n\(log)", sourceLocation: sourceLocation)
    }

    /// The names and outcomes of the runs that have ended.
    var past: [String] {
        get throws {
            try ask("history").dropLast().map { line in
                let words = line.split(separator: " ")
                return ([words[1]] + words[4...]).joined(separator: " ")
            }
        }
    }
}

/// Waits until a condition holds; returns `false` if it never does.
func becomes(_ isSo: () -> Bool) -> Bool {
    for _ in 0..<4_000 {
        if isSo() { return true }
        usleep(5_000)
    }
    return false
}

/// Calls `body` with the address of a Unix socket.
func withAddress(_ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32) -> Int32 {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Array(path.utf8)) }
    return withUnsafePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
        }
    }
}

/// The service manager's side of the notification socket.
final class Manager {
    let path: String
    private let descriptor: Int32
    private(set) var messages: [String] = []

    init(in directory: TemporaryDirectory) throws {
        path = directory["notify"]
        descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
        try #require(withAddress(path) { bind(descriptor, $0, $1) } == 0, "errno \(errno)")
    }

    deinit {
        close(descriptor)
    }

    /// Waits for messages with all of these beginnings, in this order, possibly with others between.
    func hears(_ beginnings: String...) -> Bool {
        becomes {
            var buffer = [UInt8](repeating: 0, count: 4_096)
            while case let count = recv(descriptor, &buffer, buffer.count, 0), count > 0 {
                messages.append(String(decoding: buffer[..<count], as: UTF8.self))
            }
            var rest = beginnings[...]
            for message in messages where rest.first.map(message.hasPrefix) == true { rest = rest.dropFirst() }
            return rest.isEmpty
        }
    }
}
