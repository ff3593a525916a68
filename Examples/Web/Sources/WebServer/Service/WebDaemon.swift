internal import CoreMetrics
public import Logging
internal import RunLoopConsole
internal import RunLoopHTTP
internal import RunLoopKit
internal import RunLoopMetrics
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
    private let server: HTTPServer
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
        let site = Site(settings, loops: loops, disks: disks, log)
        self.site = site
        server = HTTPServer(on: loops) { try await Router(site: site).answer($0) }
        server.hooks = site.hooks
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
        try listen()
        connectStages()
        let status = daemon.run()
        log.info("stopped")
        return status
    }

    // MARK: Starting

    /// Reads the files of limits and certificates, and takes both or none.
    private func configure() throws {
        let (old, limits) = (server.limits, try settings.limits.map(Limits.init(contentsOf:)) ?? Limits())
        server.limits = limits.http
        do {
            if let (chain, key) = settings.certificate {
                try server.setTLS(TLSIdentity(chain: .file(chain), key: .file(key)))
            }
        } catch {
            server.limits = old
            throw error
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

    private func listen() throws {
        do {
            let address =
                if let inherited { try server.listen(inherited: inherited.fileDescriptor) } else {
                    try server.listen(on: Endpoint(settings.address, port: UInt16(settings.port)))
                }
            log.info("listening on \(address)")
        } catch {
            throw Refused(description: "cannot listen: \(error)", status: Status.unavailable)
        }
    }

    // MARK: Stopping and reloading

    private func connectStages() {
        daemon.onReload(name: "limits and certificates") { [unowned self] in
            do { try configure() } catch { log.error("not reloaded: \(error)") }
        }
        daemon.onStop(.stopAccepting, name: "readiness") { [site] in site.isReady = false }
        daemon.onStop(.exit, order: .min, name: "log") { [site, log] in
            if site.connections > 0 { log.warning("closing \(site.connections) connections before their end") }
        }
        daemon.add(server)
        daemon.onStop(.exit, name: "uploads") { [site] done in site.uploads.whenWritten { done() } }
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
