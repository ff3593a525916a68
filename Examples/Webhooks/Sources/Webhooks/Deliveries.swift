import Glibc
import Logging
import RunLoopHTTP
import RunLoopKit

/// Delivers hooks to their destinations, and tries again until each has been taken. On the loop's thread.
final class Deliveries {
    /// The hooks of a destination that are due. The others are under way, or wait for their next try.
    private final class Lane {
        var due: [Hook] = []
        var (underWay, count) = (0, 0)
        /// The end of the rest that the destination has asked for.
        var rest = RunLoop.Instant(nanoseconds: 0)
    }

    /// The numbers for `/metrics`.
    var totals = ["accepted": 0, "refused": 0, "delivered": 0, "failed_tries": 0, "given_up": 0]
    /// The settings of all tries from now on. Hooks of a destination that they do not name wait until they do.
    var settings: Settings {
        didSet { for name in lanes.keys.sorted() { begin(name) } }
    }
    private let (loop, logger): (RunLoop, Logger)
    private let client: HTTPClient
    /// Called with each hook that needs no further delivery.
    private let forget: (Hook) -> Void
    private var lanes: [String: Lane] = [:]
    private var tries: [Int: Task<Void, any Error>] = [:]
    private var isStopping = false

    init(_ settings: Settings, on loop: RunLoop, _ logger: Logger, forget: @escaping (Hook) -> Void) {
        (self.settings, self.loop, self.logger, self.forget) = (settings, loop, logger, forget)
        var options = HTTPClient.Options()
        options.connectionsPerOrigin = 64
        client = HTTPClient(on: loop, options: options)
    }

    /// The number of hooks that are not delivered yet, by destination.
    var counts: [(name: String, count: Int)] { lanes.map { ($0.key, $0.value.count) }.sorted { $0.0 < $1.0 } }

    /// Refuses a hook that has no destination, or whose destination has a backlog.
    func check(_ name: String) throws(HTTPServer.Refusal) {
        guard let destination = settings.destinations[name] else { throw HTTPServer.Refusal(.notFound) }
        guard lanes[name]?.count ?? 0 < destination.backlog else {
            throw HTTPServer.Refusal(.tooManyRequests, "too many hooks wait", headerFields: [.retryAfter: "30"])
        }
    }

    /// Delivers a stored hook.
    func add(_ hook: Hook) {
        if lanes[hook.destination] == nil { lanes[hook.destination] = Lane() }
        lanes[hook.destination]!.count += 1
        retry(hook)
    }

    /// Begins no further tries, and waits for those under way, which end early if this task is cancelled.
    func finish() async {
        isStopping = true
        let tasks = tries.sorted { $0.key < $1.key }.map(\.value)
        await withTaskCancellationHandler {
            for task in tasks { _ = await task.result }
        } onCancel: {
            for task in tasks { task.cancel() }
        }
    }

    private func retry(_ hook: Hook) {
        lanes[hook.destination]!.due.append(hook)
        begin(hook.destination)
    }

    /// Begins as many tries as the destination may have.
    private func begin(_ name: String) {
        guard let destination = settings.destinations[name], let lane = lanes[name], lane.rest <= loop.now else {
            return
        }
        while !isStopping, lane.underWay < destination.simultaneous, !lane.due.isEmpty {
            let hook = lane.due.removeFirst()
            lane.underWay += 1
            tries[hook.number] = loop.task(name: "delivery") { [self] in
                await deliver(hook, lane, destination.address)
                tries[hook.number] = nil
                lane.underWay -= 1
                begin(name)
            }
        }
    }

    private func deliver(_ hook: Hook, _ lane: Lane, _ address: String) async {
        do {
            let fields: HTTPFields = [.contentType: "application/json", .idempotencyKey: hook.key]
            let request = try HTTPRequest(.post, address, headerFields: fields)
            let answer = try await client.send(request, body: .text(hook.body))
            guard answer.status.kind == .successful else {
                return fail(hook, lane, "\(answer.status)", rest: min(.seconds(86_400), answer.retryAfter ?? .zero))
            }
            end(hook, lane, "delivered")
            // Read to its end, so that the connection is used again.
            _ = try? await loop.withTimeout(.seconds(5)) { try await answer.body.collect(upTo: 65_536) }
        } catch {
            fail(hook, lane, "\(error)", rest: .zero)
        }
    }

    private func end(_ hook: Hook, _ lane: Lane, _ total: String) {
        forget(hook)
        lane.count -= 1
        totals[total]! += 1
    }

    /// Tries again after a pause, unless the hook is too old.
    private func fail(_ hook: Hook, _ lane: Lane, _ reason: String, rest: Duration) {
        guard !isStopping else { return }
        totals["failed_tries"]! += 1
        logger.info("\(hook.destination) has not taken \(hook.key): \(reason)")
        if rest > .zero {
            // The whole destination rests, not this hook alone.
            lane.rest = max(lane.rest, loop.now + rest)
            loop.perform(at: lane.rest) { [self] in begin(hook.destination) }
        }
        guard loop.wallTime - hook.date < .seconds(3_600 * settings.lifetimeHours) else {
            logger.error("gave up \(hook.key) for \(hook.destination): \(String(reflecting: hook.body))")
            return end(hook, lane, "given_up")
        }
        var next = hook
        next.failures += 1
        loop.perform(afterDelay: .seconds(pause(after: next.failures))) { [self] in retry(next) }
    }

    /// An exponential pause in seconds. A random half of it keeps hooks apart that failed together.
    private func pause(after failures: Int) -> Double {
        let whole = min(settings.firstPauseSeconds * exp2(Double(failures - 1)), settings.longestPauseSeconds)
        return Double.random(in: whole / 2...whole, using: &loop.randomNumbers)
    }
}

extension HTTPField.Name {
    static let idempotencyKey = Self("Idempotency-Key")!
}
