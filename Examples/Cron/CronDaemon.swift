import Glibc
import Logging
import RunLoopKit
import RunLoopUnix

/// The scheduler as a daemon, from its start to its end.
final class CronDaemon {
    private let options: Cron
    private let log: Logger
    private let loop: RunLoop
    private let daemon: Daemon
    /// The thread for work that waits for the disk, so that the loop never does.
    private let disk: LoopThread
    private let ledger: Ledger
    private let file: JobFile
    private let scheduler: Scheduler

    /// The reason why the daemon cannot start, in one line, with its exit status.
    struct Refusal: Error {
        let text: String
        let status: Int32
    }

    /// - Throws: ``Refusal`` if the service manager's variables are invalid, because otherwise the manager would wait
    ///   for a message that never comes. Thrown also if the state file cannot be kept.
    init(_ options: Cron, _ log: Logger) throws {
        (self.options, self.log) = (options, log)
        loop = .current
        let manager: ServiceManager
        do {
            // Before other threads exist. The jobs must not send notifications in the daemon's name.
            manager = try ServiceManager(unsetEnvironment: true)
        } catch {
            throw Refusal(text: "\(error)", status: Status.configuration)
        }
        daemon = Daemon(
            loop: loop, manager: manager, drainLimit: options.drain.duration,
            exitLimit: options.grace.duration + .seconds(5))
        disk = LoopThread(name: "disk")
        do {
            ledger = try Ledger(options.state, on: loop, disk: disk.remote, log)
        } catch {
            throw Refusal(text: "\(error)", status: Status.cannotCreate)
        }
        file = JobFile(options.jobs, in: options.zone.zone, on: loop, disk: disk.remote, log)
        scheduler = Scheduler(options.schedulerSettings, on: loop, ledger, log)
        file.tableHandler = { [scheduler] in scheduler.schedule($0) }
    }

    /// - Returns: the exit status.
    func run() throws -> Int32 {
        defer { close() }
        daemon.errorHandler = { [log] _, error in log.warning("\(error)") }
        for remark in daemon.manager.remarks { log.info("\(remark)") }
        // Before any work that takes time: a signal that arrives meanwhile waits for the loop to run.
        try daemon.handleSignals { [log] in log.info("\($0)") }
        try loop.dump(on: .user1)
        try load()
        let control = try listen()
        connectStages(control)
        let watchdog = Watchdog(daemon.manager, loop: loop)
        defer { watchdog?.invalidate() }
        let status = daemon.run()
        if scheduler.runningRuns > 0 {
            log.error("stopped in a hurry; what still runs is killed")
            scheduler.kill()
        }
        log.info("stopped")
        return status
    }

    // MARK: Starting

    private func load() throws {
        do {
            try ledger.load()
        } catch {
            throw Refusal(text: "\(error)", status: Status.badData)
        }
        do {
            // First, so that no change is overlooked.
            try file.watch()
            try file.load()
        } catch {
            throw Refusal(text: "\(error)", status: Status.configuration)
        }
    }

    private func listen() throws -> ControlSocket? {
        guard let path = options.control else { return nil }
        do {
            return try ControlSocket(at: path, on: loop, Answers(scheduler, file, ledger), log)
        } catch {
            throw Refusal(text: "\(error)", status: Status.unavailable)
        }
    }

    // MARK: Stopping and reloading

    private func connectStages(_ control: ControlSocket?) {
        if let control { daemon.add(control.server, name: "control") }
        daemon.onReload(name: "jobs") { [file] in try? await file.reload() }
        daemon.onStop(.stopAccepting, name: "jobs") { [file, scheduler] in
            file.stopWatching()
            scheduler.stopStarting()
        }
        daemon.onStop(.drain, name: "jobs") { [scheduler] in await scheduler.finish() }
        daemon.onStop(.exit, name: "jobs") { [scheduler, ledger] in
            await scheduler.end()
            try? await ledger.save()
        }
    }

    /// Removes everything from the loop when the daemon could not start.
    private func close() {
        file.stopWatching()
        scheduler.stopStarting()
        disk.stop()
        disk.join()
    }
}

/// The statuses of sysexits.h, which the C library's module does not have.
enum Status {
    static let badData: Int32 = 65
    static let unavailable: Int32 = 69
    static let cannotCreate: Int32 = 73
    static let configuration: Int32 = 78
}
