import FoundationEssentials
import Glibc
import Logging
import RunLoopHTTP
import RunLoopKit
import RunLoopUnix

/// The service, from its start to its end. On the loop's thread.
final class Service {
    private let (path, logger): (String, Logger)
    private let (loop, disk) = (RunLoop.current, LoopThread(name: "disk"))
    private let daemon: Daemon
    /// The log, on the thread of the disk.
    private let log: LoopBound<HookLog>
    private let deliveries: Deliveries
    private var lastNumber: Int

    init(settings path: String, log logPath: String, _ logger: Logger) throws {
        (self.path, self.logger) = (path, logger)
        daemon = Daemon(loop: loop, manager: try ServiceManager())
        // A file that may not grow is an error of the log, and must not end the process.
        try Signal.ignore(Signal(rawValue: SIGXFSZ))
        // Before any work that takes time: a signal that arrives meanwhile waits for the loop to run.
        try daemon.handleSignals { logger.info("\($0)") }
        let (log, hooks, number) = try disk.remote.performAndWait { loop in
            let log = try HookLog(at: logPath)
            return (LoopBound(log, loop: loop), log.hooks, log.lastNumber)
        }
        (self.log, lastNumber) = (log, number)
        deliveries = Deliveries(try Settings.read(path), on: loop, logger) { [logger] hook in
            log.remote.perform { _ in
                // A hook whose end is not in the log is delivered once more after the next start.
                do { try log.value.append(LogLine(number: hook.number)) } catch { logger.warning("\(error)") }
            }
        }
        for hook in hooks.values.sorted(by: { $0.number < $1.number }) { deliveries.add(hook) }
    }

    /// Serves until a signal stops it: no further requests, then the answers and deliveries that have begun, then the
    /// lines of the log. Returns the exit status.
    func run(at address: String, port: UInt16) throws -> Int32 {
        let server = HTTPServer(on: loop) { [self] in try await answer($0) }
        server.hooks.failed = { [logger] error, request in logger.error("\(request.path ?? "-"): \(error)") }
        let bound = try server.listen(on: Endpoint(address, port: port))
        logger.info("listening on \(bound)")
        daemon.add(server)
        daemon.onStop(.drain, name: "deliveries") { [deliveries] in await deliveries.finish() }
        daemon.onReload(name: "settings") { [self] in
            do { deliveries.settings = try Settings.read(path) } catch { logger.error("not reloaded: \(error)") }
        }
        // No sign of life is sent while the disk does not answer.
        let watchdog = Watchdog(daemon.manager, loop: loop, watching: [disk.remote])
        defer { watchdog?.invalidate() }
        let status = daemon.run()
        disk.stop()
        disk.join()
        return status
    }

    private func answer(_ request: HTTPServer.Request) async throws -> HTTPServer.Response {
        switch (request.method, request.path.split(separator: "/")) {
        case (.get, ["metrics"]): return .text(try await metrics())
        case (.post, let path) where path.count == 2 && path[0] == "hooks":
            do {
                let hook = try await accept(request, for: String(path[1]))
                deliveries.totals["accepted"]! += 1
                return HTTPServer.Response(.accepted, headerFields: [.idempotencyKey: hook.key])
            } catch {
                deliveries.totals["refused"]! += 1
                throw error
            }
        default: throw HTTPServer.Refusal(.notFound)
        }
    }

    /// Stores a hook, and has it delivered.
    private func accept(_ request: HTTPServer.Request, for name: String) async throws -> Hook {
        try deliveries.check(name)
        let bytes = try await request.body.collect(upTo: deliveries.settings.hookBytes)
        guard let body = String(validating: bytes.readableBytesView, as: UTF8.self), isJSON(body) else {
            throw HTTPServer.Refusal(.badRequest, "the body is not JSON")
        }
        let key = request.headerFields[.idempotencyKey] ?? makeKey()
        lastNumber += 1
        let hook = Hook(number: lastNumber, destination: name, key: key, date: loop.wallTime, body: body)
        do {
            try await log.remote.run { [log] _ in try log.value.append(LogLine(number: hook.number, hook: hook)) }
        } catch let error as HookLog.NotStored {
            throw HTTPServer.Refusal(.init(code: 507), "not stored: \(error.reason)", headerFields: [.retryAfter: "30"])
        }
        deliveries.add(hook)
        return hook
    }

    private func makeKey() -> String {
        (0..<2).map { _ in String(UInt64.random(in: 0 ... .max, using: &loop.randomNumbers), radix: 36) }.joined()
    }

    private func isJSON(_ text: String) -> Bool {
        struct Anything: Decodable { init(from decoder: any Decoder) {} }
        return (try? JSONDecoder().decode(Anything.self, from: Data(text.utf8))) != nil
    }

    /// The text format of Prometheus.
    private func metrics() async throws -> String {
        let length = try await log.remote.run { [log] _ in log.value.length }
        let totals = deliveries.totals.sorted { $0.key < $1.key }.map { "webhooks_\($0)_total \($1)\n" }
        let waiting = deliveries.counts.map { "webhooks_waiting{destination=\"\($0)\"} \($1)\n" }
        return (totals + waiting + ["webhooks_log_bytes \(length)\n"]).joined()
    }
}
