#if Adapters
internal import NIOCore
@_spi(Ports) internal import RunLoopKit
@_spi(Ports) internal import RunLoopNIO
internal import RunLoopTLS
@_spi(Ports) internal import RunLoopUnix
internal import Synchronization

/// The state that all connections of a server share. Any thread.
final class ServerCore: Sendable {
    typealias Tasks = nonisolated(nonsending) (HTTPServer.Request) async throws -> HTTPServer.Response
    typealias Exchanges = (HTTPExchange) -> Void

    /// The program's part: a task for each request, or a closure that sets handlers.
    // Unchecked: the closure of a server on one loop is called on that loop's thread; those on a group are `@Sendable`.
    enum Service: @unchecked Sendable {
        case tasks(Tasks)
        case exchanges(Exchanges)
    }

    /// The settings that may change while the server runs, for connections from then on. The connections share an object
    /// until the next change.
    final class Settings: Sendable {
        let limits: HTTPServer.Limits
        let hooks: HTTPServer.Hooks
        let tls: TLSServerContext?

        init(_ limits: HTTPServer.Limits, _ hooks: HTTPServer.Hooks, _ tls: TLSServerContext?) {
            (self.limits, self.hooks, self.tls) = (limits, hooks, tls)
        }
    }

    let modes: RunLoop.Modes
    let census = Census()
    /// The channels of the open connections.
    let channels = ServedChannels()
    private let service: Service
    /// The isolation of the program's closure: the main actor, or none.
    private let isolation: (any Actor)?
    private let origin: RunLoop.Origin
    private let settingsBox: Mutex<Settings>

    init(
        _ service: Service, _ limits: HTTPServer.Limits, _ modes: RunLoop.Modes, isolation: (any Actor)? = nil,
        _ origin: RunLoop.Origin
    ) {
        (self.service, self.modes, self.isolation, self.origin) = (service, modes, isolation, origin)
        settingsBox = Mutex(Settings(limits, HTTPServer.Hooks(), nil))
    }

    var settings: Settings { settingsBox.withLock { $0 } }

    var limits: HTTPServer.Limits {
        get { settings.limits }
        set { settingsBox.withLock { $0 = Settings(newValue, $0.hooks, $0.tls) } }
    }

    var hooks: HTTPServer.Hooks {
        get { settings.hooks }
        set { settingsBox.withLock { $0 = Settings($0.limits, newValue, $0.tls) } }
    }

    func setTLS(_ tls: TLSServerContext) {
        settingsBox.withLock { $0 = Settings($0.limits, $0.hooks, tls) }
    }

    // MARK: Connections

    /// Serves an accepted connection. On the thread of its loop.
    func accept(_ descriptor: Int32, from peer: Endpoint, on loop: RunLoop) {
        let settings = settings
        let refusal: HTTPServer.Limit?
        switch census.enter(peer, settings.limits) {
        case .served: refusal = nil
        case .refused(let limit): refusal = limit
        case .dropped:
            census.leave(peer)
            return WorldSystem.of(loop).close(descriptor)
        }
        let client = ServedClient(self, settings, on: loop, peer, refusal: refusal)
        channels.serve(descriptor, from: peer, on: loop.nio(inModes: modes), tls: settings.tls) { channel in
            settings.hooks.opened?(peer)
            channel.closeFuture.whenComplete { [census] _ in
                census.leave(peer)
                settings.hooks.closed?(peer)
            }
            guard let options = channel.syncOptions else { return }
            try options.setOption(.allowRemoteHalfClosure, value: true)
            // The requests of one read wait while the first of them is answered.
            try options.setOption(.maxMessagesPerRead, value: 1)
            try channel.pipeline.syncOperations.addHandler(ConnectionHandler(client))
        }
    }

    // MARK: Requests

    /// Has the program answer a request.
    func serve(_ exchange: HTTPExchange, on loop: RunLoop) {
        switch service {
        case .exchanges(let body): body(exchange)
        case .tasks(let body):
            let task = loop.taskAtOnce(name: "HTTP request", inModes: modes, isolation: isolation, origin: origin) {
                do {
                    try await exchange.answer(with: try await body(HTTPServer.Request(exchange)))
                } catch {
                    exchange.fail(error)
                }
            }
            exchange.began(task)
        }
    }
}
#endif
