internal import CoreMetrics
public import Logging
internal import NIOCore
internal import RunLoopConsole
internal import RunLoopKit
internal import RunLoopMetrics
internal import RunLoopNIO
internal import RunLoopTLS
internal import RunLoopUnix

/// The web server as a daemon, from its start to its end.
public final class WebDaemon {
    private let settings: Settings
    private let log: Logger
    private let loop: RunLoop
    private let inherited: ActivatedSocket?
    private let daemon: Daemon
    private let loops: LoopGroup
    /// The threads that wait for the disk.
    private let disks: LoopGroup
    private let site: Site
    private var console: Console?

    /// The reason why the daemon cannot start, in one line, with its exit status.
    public struct Refused: Error, CustomStringConvertible {
        /// The reason.
        public let description: String
        /// A status of sysexits.h.
        public let status: Int32
    }

    /// Creates the daemon on the calling thread's loop.
    ///
    /// - Throws: ``Refused`` if the service manager's variables or a file cannot be used.
    public init(_ settings: Settings, _ log: Logger) throws {
        (self.settings, self.log, loop) = (settings, log, .current)
        let manager: ServiceManager
        do {
            // Before any code opens descriptors.
            inherited = try ActivatedSocket.all().first
            try inherited?.expect(.stream, listening: true)
            manager = try ServiceManager()
        } catch {
            throw Refused(description: "\(error)", status: Status.configuration)
        }
        daemon = Daemon(loop: loop, manager: manager, drainLimit: settings.drainTime)
        do {
            loops = try LoopGroup(count: settings.threads, name: "web")
            disks = try LoopGroup(count: 2, name: "disk")
        } catch {
            throw Refused(description: "\(error)", status: Status.system)
        }
        site = Site(settings, loops: loops, disks: disks, log)
    }

    /// Serves until the daemon is stopped.
    ///
    /// - Returns: the exit status.
    /// - Throws: ``Refused`` if the daemon cannot start.
    public func run() throws -> Int32 {
        defer { end() }
        daemon.errorHandler = { [log] _, error in log.warning("\(error)") }
        for remark in daemon.manager.remarks { log.info("\(remark)") }
        // Before any work that takes time: a signal that arrives meanwhile waits for the loop to run.
        do {
            try daemon.handleSignals { [log] in log.info("\($0)") }
        } catch {
            throw Refused(description: "\(error)", status: Status.system)
        }
        do {
            try configure()
            try site.uploads.prepare()
            try openConsole()
        } catch {
            throw Refused(description: "\(error)", status: Status.configuration)
        }
        let watchdog = Watchdog(daemon.manager, loop: loop, watching: loops.loops)
        defer { watchdog?.invalidate() }
        let metrics = loops.loops.enumerated().map { number, loop in
            LoopMetrics(loop, name: "web \(number)", interval: .seconds(60), factory: site.metrics)
        }
        defer { withExtendedLifetime(metrics) {} }
        // Last, when everything that it needs has started. A client of an inherited socket may have waited for it, and is
        // answered on another thread before `listen` returns.
        site.isReady = true
        let (bootstrap, listener) = try listen()
        connectStages(bootstrap, listener)
        let status = daemon.run()
        log.info("stopped")
        return status
    }

    // MARK: Starting

    /// Reads the files of limits and certificates.
    private func configure() throws {
        let limits = try settings.limits.map(Limits.init(contentsOf:)) ?? Limits()
        if let (chain, key) = settings.certificate {
            var options = TLSOptions()
            options.applicationProtocols = ["h2", "http/1.1"]
            options.handshakeTimeout = limits.headTime
            site.tls = try TLSServerContext(
                identity: TLSIdentity(chain: .file(chain), key: .file(key)), options: options)
        }
        site.limits = limits
    }

    private func openConsole() throws {
        guard let path = settings.console else { return }
        let console = try Console(at: path)
        console.add(loop.remote, named: "main")
        for (name, group) in [("web", loops), ("disk", disks)] {
            for (number, loop) in group.loops.enumerated() { console.add(loop, named: "\(name) \(number)") }
        }
        self.console = console
        guard settings.hasConsolePage else { return }
        site.consoleAccess = try ConsoleAccess(at: path)
        log.info("the key of the page /console is in \(path).key")
    }

    private func listen() throws -> (RunLoopServerBootstrap, any Channel) {
        let group = RunLoopEventLoopGroup(loops)
        let bootstrap = RunLoopServerBootstrap(group: group.eventLoops[0], childGroup: group)
            .childChannelInitializer { [site] channel in
                channel.eventLoop.makeCompletedFuture { try Self.prepare(channel, site) }
            }
        if settings.certificate != nil { _ = bootstrap.childTLS { [site] in site.tls! } }
        let bound =
            if let inherited { bootstrap.withBoundSocket(inherited.fileDescriptor) } else {
                bootstrap.bind(host: settings.address, port: settings.port)
            }
        do {
            let listener = try loop.run {
                try await withCheckedThrowingContinuation { waiting in
                    bound.whenComplete { waiting.resume(with: $0) }
                }
            }
            log.info("listening on \(listener.localAddress.map { "\($0)" } ?? "-")")
            return (bootstrap, listener)
        } catch {
            throw Refused(description: "cannot listen: \(error)", status: Status.unavailable)
        }
    }

    /// Prepares a connection, on its loop.
    private static func prepare(_ channel: any Channel, _ site: Site) throws {
        let peer = channel.remoteAddress?.ipAddress ?? "-"
        let limits = site.limits
        let admission = site.census.enter(peer, limits)
        site.measures.connections.record(site.census.count)
        channel.closeFuture.whenComplete { _ in
            site.census.leave(peer)
            site.measures.connections.record(site.census.count)
        }
        let refusal: Refusal.Limit?
        switch admission {
        case .served: refusal = nil
        case .refused(let limit): refusal = limit
        case .dropped: throw ChannelError.ioOnClosedChannel
        }
        guard let options = channel.syncOptions else { return }
        try options.setOption(.allowRemoteHalfClosure, value: true)
        // The requests of one read wait while the first of them is answered.
        try options.setOption(.maxMessagesPerRead, value: 1)
        let client = Client(site: site, limits: limits, peer: peer, refusal: refusal)
        try channel.pipeline.syncOperations.addHandler(ConnectionHandler(client))
    }

    // MARK: Stopping and reloading

    private func connectStages(_ bootstrap: RunLoopServerBootstrap, _ listener: any Channel) {
        daemon.onReload(name: "limits and certificates") { [unowned self] in
            do { try configure() } catch { log.error("not reloaded: \(error)") }
        }
        daemon.onStop(.stopAccepting, name: "listener") { [site] done in
            site.isReady = false
            // The connections that wait are accepted.
            listener.close(mode: .input).whenComplete { _ in done() }
        }
        daemon.onStop(.drain, name: "connections") { done in
            bootstrap.quiesce().whenComplete { _ in done() }
        }
        daemon.onStop(.exit, name: "connections") { [loops, site, log] done in
            if site.census.count > 0 { log.warning("closing \(site.census.count) connections before their end") }
            bootstrap.closeConnections().whenComplete { _ in
                // Each loop has passed the end of its uploads to the disk's when it comes to its block.
                loops.performOnEach({ _ in }, completion: { done() })
            }
        }
    }

    /// Ends the console, and then the threads; first the disk's, because the loops wait for their jobs.
    private func end() {
        console?.close()
        site.consoleAccess?.remove()
        for group in [disks, loops] {
            group.stop()
            group.join()
        }
    }
}

/// The statuses of sysexits.h, which the C library's module does not have.
enum Status {
    static let unavailable: Int32 = 69
    static let system: Int32 = 71
    static let configuration: Int32 = 78
}
