import Glibc
import RunLoopKit
import RunLoopUnix

/// A process that is one side of a conversation. Prints a line for its start and for each event.
struct Participant {
    private let side: Side.Name
    private let process: ChildProcess
    private let lines: Connection.Lines

    init(_ side: Side.Name, of conversation: Conversation, in namespace: String, on loop: RunLoop) throws {
        self.side = side
        process = try ChildProcess.spawn(
            .named("ip"),
            arguments: ["netns", "exec", namespace, CommandLine.arguments[0], side.rawValue, conversation.name],
            standardOutput: .pipe)
        lines = Connection(reading: process.standardOutput, writing: nil, on: loop).lines()
    }

    /// Takes part in a conversation, in this process.
    static func takePart(as name: Side.Name, in conversation: Conversation) throws {
        // Ends even if the other side does not.
        alarm(60)
        let loop = RunLoop.current
        let report = { (text: String, count: Int?) in
            // Not `print`, whose buffer would be lost with a killed process.
            var line = "\(loop.now.nanoseconds) \(count ?? -1) \(text)\n"
            line.withUTF8 { _ = write(STDOUT_FILENO, $0.baseAddress!, $0.count) }
        }
        let side = Side(loop: loop, report: report)
        if name == .client { report("start", nil) }
        try (name == .client ? conversation.client : conversation.server)(side)
        if name == .server { report("start", nil) }
        loop.run()
    }

    @discardableResult
    nonisolated(nonsending) func waitForStart() async throws -> RunLoop.Instant {
        guard let line = try await lines.next(), let (time, _, _) = Self.parse(line) else {
            throw SystemError("start the \(side)", errno: ECHILD)
        }
        return time
    }

    /// Returns the events of the process, after its end.
    nonisolated(nonsending) func events(since start: RunLoop.Instant) async throws -> [Event] {
        var events: [Event] = []
        while let line = try await lines.next() {
            guard let (time, count, text) = Self.parse(line) else { continue }
            events.append(Event(side: side, text: text, count: count, time: time - start))
        }
        _ = try await process.exit()
        return events
    }

    private static func parse(_ line: String) -> (RunLoop.Instant, Int?, String)? {
        let parts = line.split(separator: " ", maxSplits: 2)
        guard parts.count == 3, let time = Int64(parts[0]), let count = Int(parts[1]) else { return nil }
        return (.init(nanoseconds: time), count < 0 ? nil : count, String(parts[2]))
    }

    func kill() { _ = try? process.kill(.kill) }
}
