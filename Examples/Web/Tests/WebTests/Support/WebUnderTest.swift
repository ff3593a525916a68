import Glibc
import RunLoopKit
import RunLoopUnix
import Testing

/// A daemon as a process.
final class WebUnderTest {
    let directory: TemporaryDirectory
    let child: ChildProcess
    private(set) var port = 0

    /// - Parameters:
    ///   - limits: the text of the file of limits; `nil` if the directory has one.
    ///   - arguments: further arguments.
    ///   - directory: the directory of the daemon's files.
    ///   - socket: a listening descriptor, passed as a service manager does.
    init(
        limits: String? = "{}", _ arguments: [String] = [], in directory: TemporaryDirectory = TemporaryDirectory(),
        socket: Int32? = nil, log: String = "log"
    ) throws {
        self.directory = directory
        logName = log
        if let limits { directory.write(limits.utf8, to: "limits") }
        let logFile = open(directory[log], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        defer { close(logFile) }
        let words =
            [
                pathOfProgram("Web"), "--port", "0", "--uploads", directory["uploads"], "--limits", directory["limits"],
            ] + arguments
        let activation = socket == nil ? "" : "LISTEN_PID=$$ LISTEN_FDS=1 "
        let input = socket == nil ? "" : " 3<&0 0</dev/null"
        child = try ChildProcess.spawn(
            .path("/bin/sh"), arguments: ["-c", "\(activation)exec \"$0\" \"$@\"\(input)"] + words,
            standardInput: socket.map { .descriptor($0) } ?? .null, standardOutput: .null,
            standardError: .descriptor(logFile))
        eventually("the daemon listens: \(self.log)") {
            guard let line = self.log.split(separator: "\n").first(where: { $0.contains("listening on") }),
                let digits = line.split(separator: ":").last
            else { return false }
            port = Int(digits) ?? 0
            return true
        }
    }

    deinit {
        _ = try? child.kill(.kill)
    }

    private let logName: String

    /// The log so far.
    var log: String { String(decoding: directory.contents(of: logName) ?? [], as: UTF8.self) }

    func url(_ path: String, scheme: String = "http") -> String { "\(scheme)://127.0.0.1:\(port)\(path)" }

    /// Stops the daemon, and expects a clean end.
    func stop(sourceLocation: SourceLocation = #_sourceLocation) throws {
        try child.kill(.terminate)
        let status = try wait(for: child)
        let end = log.split(separator: "\n").drop { !$0.contains("SIGTERM") }.prefix(20).joined(separator: "\n")
        #expect(status == .exited(0), "\(end)", sourceLocation: sourceLocation)
    }

    /// Returns the value of a metric.
    func metric(_ name: String) throws -> Double? {
        let text = try output(of: "curl", ["-s", url("/metrics")]).text
        return text.split(separator: "\n").first { $0.hasPrefix(name + " ") }
            .flatMap { Double($0.dropFirst(name.count + 1)) }
    }

    /// The number of bytes of memory that the process has in use.
    var memory: Int {
        let words = TemporaryDirectory.contents(at: "/proc/\(child.processIdentifier)/statm").split(separator: " ")
        return (words.count > 1 ? Int(words[1]) ?? 0 : 0) * Int(sysconf(Int32(_SC_PAGESIZE)))
    }
}

extension TemporaryDirectory {
    /// Returns the contents of a file of the system, which has no length.
    static func contents(at path: String) -> String {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: 4_096)
        let count = read(file, &bytes, bytes.count)
        return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
    }
}
