import Glibc
import RunLoopHosts
import RunLoopKit
import RunLoopUnix

/// Two network namespaces, and the link between them.
struct RealLink {
    let loop: RunLoop
    /// The namespace of each side.
    let namespaces: [Side.Name: String]
    private let relay: Relay

    init(namespaces: [Side.Name: String], on loop: RunLoop) throws {
        (self.loop, self.namespaces) = (loop, namespaces)
        relay = try Relay(client: Self.device(of: .client), server: Self.device(of: .server), on: loop)
        for side in Side.Name.allCases {
            let (device, namespace) = (Self.device(of: side), namespaces[side]!)
            let peer = Side.Name.allCases.first { $0 != side }!
            try run("link set dev \(device) netns \(namespace)")
            try run("-n \(namespace) address add \(side.address) peer \(peer.address) dev \(device)")
            try run("-n \(namespace) link set dev \(device) up mtu 1500")
        }
    }

    /// The name of a device, which nobody else uses while it is in the namespace of this process.
    private static func device(of side: Side.Name) -> String { "\(side)\(getpid())" }

    private func run(_ command: String) throws {
        let arguments = command.split(separator: " ").map(String.init)
        let child = try ChildProcess.spawn(.named("ip"), arguments: arguments)
        let status = try loop.run { try await child.exit() }
        guard status == .exited(0) else { throw SystemError("ip \(command): \(status)", errno: EINVAL) }
    }

    /// Holds a conversation between two processes.
    func hold(_ conversation: Conversation) throws -> [Event] {
        try loop.run { try await converse(conversation) }
    }

    private func at(_ date: RunLoop.Instant, _ action: @escaping () -> Void) {
        loop.add(Timer(at: date) { _ in action() }, forMode: .common)
    }

    private nonisolated(nonsending) func converse(_ conversation: Conversation) async throws -> [Event] {
        relay.prepare(conversation.link)
        let server = try Participant(.server, of: conversation, in: namespaces[.server]!, on: loop)
        try await server.waitForStart()
        let client = try Participant(.client, of: conversation, in: namespaces[.client]!, on: loop)
        let start = try await client.waitForStart()
        for fault in conversation.faults {
            switch fault {
            case .cut(let time, let end):
                at(start + time) { relay.isCut = true }
                if let end { at(start + end) { relay.isCut = false } }
            case .killServer(let time): at(start + time) { server.kill() }
            }
        }
        return try await client.events(since: start) + server.events(since: start)
    }
}

/// A process that is one side of a conversation. It prints a line for its start and for each event.
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

    /// Takes part, in this process.
    static func takePart(as name: Side.Name, in conversation: Conversation) throws {
        // It ends even if the other side does not.
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

    /// Its events, when it has ended.
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
