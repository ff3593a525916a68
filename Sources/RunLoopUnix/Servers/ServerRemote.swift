internal import RunLoopKit

/// Posts to a server from the threads of its connections.
final class ServerRemote: Sendable {
    private let loop: RunLoop.Remote
    private let modes: RunLoop.Modes
    // Set once, before anything is posted, and read only on the thread of the server's loop.
    nonisolated(unsafe) weak var server: Server?

    init(_ loop: RunLoop.Remote, _ modes: RunLoop.Modes) {
        (self.loop, self.modes) = (loop, modes)
    }

    func post(_ body: @escaping @Sendable (Server) -> Void) {
        loop.perform(inModes: modes) { [self] _ in if let server { body(server) } }
    }
}

extension LoopGroup {
    /// Makes the part of a server on each loop. Blocks the calling thread.
    func parts(_ make: @escaping @Sendable (RunLoop) -> ServerPart) throws -> [LoopBound<ServerPart>] {
        try loops.map { try $0.performAndWait { LoopBound(make($0), loop: $0) } }
    }
}

extension [LoopBound<ServerPart>] {
    /// The part of the calling thread's loop.
    var current: ServerPart { first { $0.remote.isCurrent }!.value }
}

/// The servers of a loop that listen or have connections.
let openServers = RunLoop.Local { _ in OpenServers() }

final class OpenServers {
    private var servers: [Server] = []

    func insert(_ server: Server) {
        if !servers.contains(where: { $0 === server }) { servers.append(server) }
    }

    func remove(_ server: Server) {
        servers.removeAll { $0 === server }
    }
}
