import Glibc
import RunLoopHTTP
import RunLoopKit
import RunLoopUnix
import Testing
import WebhooksTestSupport

/// The program with curl, on the loopback interface.
@Suite("The program", .timeLimit(.minutes(5)))
struct ProgramTests {
    @Test("hooks of curl are delivered, and SIGTERM ends the program with 0")
    func hooks() throws {
        let (directory, receiver) = (TemporaryDirectory(), try Destination())
        defer { receiver.stop() }
        let program = try Program(directory, ["billing": receiver.port])
        #expect(try program.post("billing", #"{"paid": 5}"#, key: "one") == "202")
        #expect(try program.post("billing", "no JSON") == "400")
        #expect(try program.post("billing", "\"\(String(repeating: "x", count: 2_000))\"") == "413")
        #expect(try program.post("other", "{}") == "404")
        _ = eventually("delivered") { receiver.taken.entries == [#"one {"paid": 5}"#] }
        // The head of the answer has come some time before the totals change.
        _ = eventually("counted") { (try? program.metrics())?.contains("webhooks_delivered_total 1\n") == true }
        let metrics = try program.metrics()
        #expect(metrics.contains("webhooks_accepted_total 1\n") && metrics.contains("webhooks_refused_total 3\n"))
        #expect(metrics.contains("webhooks_waiting{destination=\"billing\"} 0\n"), "\(metrics)")
        #expect(try program.stop(.terminate) == .exited(0))
    }

    @Test("a reload adds a destination, and a file that is wrong changes nothing")
    func reload() throws {
        let (directory, receiver) = (TemporaryDirectory(), try Destination())
        defer { receiver.stop() }
        let program = try Program(directory, [:])
        #expect(try program.post("billing", "{}") == "404")
        Program.writeSettings(directory, ["billing": receiver.port])
        try program.child.kill(.hangUp)
        _ = eventually("reloaded") { (try? program.post("billing", "{}")) == "202" }
        directory.write("{", to: "settings")
        try program.child.kill(.hangUp)
        _ = eventually("refused") { contents(of: directory["errors"]).contains("not reloaded") }
        #expect(try program.post("billing", "{}") == "202")
        _ = eventually("delivered") { receiver.taken.entries.count == 2 }
        #expect(try program.stop(.terminate) == .exited(0))
    }

    @Test("hooks outlive the program, however it ends", arguments: [Signal.kill, .terminate])
    func restart(signal: Signal) throws {
        let (directory, receiver) = (TemporaryDirectory(), try Destination())
        defer { receiver.stop() }
        // Nothing listens there.
        let first = try Program(directory, ["billing": 1])
        for key in ["a", "b"] { #expect(try first.post("billing", "{}", key: key) == "202") }
        #expect(try first.stop(signal) == (signal == .kill ? .signalled(.kill, coreDumped: false) : .exited(0)))
        let second = try Program(directory, ["billing": receiver.port])
        _ = eventually("delivered") { receiver.taken.entries.sorted() == ["a {}", "b {}"] }
        #expect(try second.stop(.terminate) == .exited(0))
    }

    @Test("a full disk answers 507, and the program goes on when there is room")
    func fullDisk() throws {
        let (directory, receiver) = (TemporaryDirectory(), try Destination())
        defer { receiver.stop() }
        let program = try Program(directory, ["billing": receiver.port], fileSize: 2_000)
        var answers: [String] = []
        for number in 1...20 { answers.append(try program.post("billing", "{}", key: "\(number)")) }
        #expect(answers.contains("202") && answers.contains("507"), "\(answers)")
        let stored = zip(1...20, answers).filter { $0.1 == "202" }.map { "\($0.0) {}" }
        _ = eventually("delivered") { receiver.taken.entries.count >= stored.count }
        #expect(receiver.taken.entries.sorted() == stored.sorted())
        #expect(try program.stop(.terminate) == .exited(0))
    }

    @Test("a program that cannot start says so", arguments: [("{", 78), ("", 78)] as [(String, Int32)])
    func start(settings: String, status: Int32) throws {
        let directory = TemporaryDirectory()
        directory.write(settings, to: "settings")
        let child = try ChildProcess.spawn(
            .named(pathOfProgram("Webhooks")), arguments: [directory["settings"], directory["log"], "127.0.0.1", "0"],
            standardInput: .null, standardError: .null)
        #expect(try Program.wait(for: child) == .exited(status))
    }

    /// A destination on a thread of the test.
    private struct Destination {
        let taken: Log<String>
        let port: UInt16
        private let thread = LoopThread(name: "destination")

        init() throws {
            let taken = Log<String>()
            self.taken = taken
            port = try thread.remote.performAndWait { loop in
                let server = HTTPServer(on: loop) { request in
                    try await Receiver.take(request, taken)
                    return .text("thanks\n")
                }
                return try server.listen(on: Endpoint("127.0.0.1", port: 0)).port ?? 0
            }
        }

        func stop() {
            thread.stop()
            thread.join()
        }
    }

    private final class Program {
        let child: ChildProcess
        private let directory: TemporaryDirectory
        private let port: String

        /// - Parameter fileSize: the largest size of a file that the system permits, as on a full disk.
        init(_ directory: TemporaryDirectory, _ ports: [String: UInt16], fileSize: UInt64? = nil) throws {
            self.directory = directory
            Program.writeSettings(directory, ports)
            let errors = open(directory["errors"], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
            defer { close(errors) }
            child = try ChildProcess.spawn(
                .named(pathOfProgram("Webhooks")),
                arguments: [directory["settings"], directory["log"], "127.0.0.1", "0"], standardInput: .null,
                standardError: .descriptor(errors), resourceLimits: fileSize.map { [.fileSize: $0] } ?? [:])
            let before = "listening on 127.0.0.1:"
            var port = ""
            _ = eventually("listening") {
                let text = contents(of: directory["errors"])
                guard let range = text.firstRange(of: before), text.hasSuffix("\n") else { return false }
                port = String(text[range.upperBound...].prefix { $0.isNumber })
                return true
            }
            self.port = port
        }

        deinit { _ = try? child.kill(.kill) }

        static func writeSettings(_ directory: TemporaryDirectory, _ ports: [String: UInt16]) {
            let destinations = ports.map {
                #""\#($0)": {"address": "http://127.0.0.1:\#($1)/in", "simultaneous": 2, "backlog": 100}"#
            }
            directory.write(
                """
                {"destinations": {\(destinations.joined(separator: ","))}, "hookBytes": 1000, "firstPauseSeconds": 0.1,
                "longestPauseSeconds": 1, "lifetimeHours": 1}
                """, to: "settings")
        }

        /// Returns the status of curl's answer.
        func post(_ name: String, _ body: String, key: String? = nil) throws -> String {
            let fields = key.map { ["--header", "Idempotency-Key: \($0)"] } ?? []
            return try curl(
                ["--output", "/dev/null", "--write-out", "%{http_code}", "--data-binary", body] + fields,
                "hooks/\(name)")
        }

        func metrics() throws -> String { try curl([], "metrics") }

        private func curl(_ options: [String], _ path: String) throws -> String {
            let file = open(directory["answer"], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
            defer { close(file) }
            let curl = try ChildProcess.spawn(
                .named("curl"),
                arguments: ["--silent", "--noproxy", "*", "--max-time", "60"] + options
                    + ["http://127.0.0.1:\(port)/\(path)"],
                standardInput: .null, standardOutput: .descriptor(file))
            #expect(try Program.wait(for: curl) == .exited(0))
            return contents(of: directory["answer"])
        }

        func stop(_ signal: Signal) throws -> ChildProcess.ExitStatus {
            try child.kill(signal)
            return try Program.wait(for: child)
        }

        /// Waits until a child has ended, on the calling thread's loop.
        static func wait(for child: ChildProcess) throws -> ChildProcess.ExitStatus {
            // A mode of its own: other tests of the thread may have left something in the default mode.
            let (loop, mode) = (RunLoop.current, RunLoop.Mode("waiting for a child"))
            var status: ChildProcess.ExitStatus?
            try loop.add(ChildSource(child) { status = $1 }, forMode: RunLoop.Modes(mode))
            loop.run(in: mode)
            return try #require(status)
        }
    }
}
