import Glibc
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

    /// Returns the name of a device, unique while it is in the namespace of this process.
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
