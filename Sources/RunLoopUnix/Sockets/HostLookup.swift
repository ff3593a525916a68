internal import Glibc
@_spi(Ports) internal import RunLoopKit

/// A look-up of a name by ``HostResolver``. Belongs to the loop's thread and is not `Sendable`.
public final class HostLookup {
    private let name: String
    private let port: UInt16
    private let loop: RunLoop
    private var completion: ((Result<[Endpoint], HostResolver.LookupError>) -> Void)?
    /// The number under which it waits for a look-up of its world; `nil` until it does.
    private var number: Int?
    /// The finder of the loop's world; `nil` for the system's resolver.
    private lazy var finder = HostResolver.finder[loop.world]
    /// The look-ups that it joins. Look-ups by the system's resolver belong to the real world.
    private lazy var lookups: any HostLookups =
        HostResolver.lookups[loop.world] ?? HostResolver.sharedLookups[finder == nil ? RunLoop.realWorld : loop.world]
    /// The hold on simulated time while the system's resolver works.
    private var hold: (any TimeHold)?
    /// The timeout, which also gives the loop something to wait for.
    private var timer: Timer?

    /// Starts the look-up. The outcome is never reported before this call has returned.
    init(
        _ name: String, _ port: UInt16, on loop: RunLoop, _ modes: RunLoop.Modes, timeout: Duration,
        _ origin: RunLoop.Origin, _ completion: @escaping (Result<[Endpoint], HostResolver.LookupError>) -> Void
    ) {
        (self.name, self.port, self.loop, self.completion) = (name, port, loop, completion)
        begin(modes, timeout, origin)
    }

    /// A Boolean value that indicates whether the look-up is still pending.
    public var isPending: Bool { completion != nil }

    /// Cancels the look-up, and releases the completion without calling it. If no thread has begun to look up the name,
    /// and no other look-up waits for it, the name is not looked up at all. Has no effect once there is an outcome.
    /// Call it on the loop's thread.
    public func cancel() {
        let dropped = completion
        completion = nil
        timer?.invalidate()
        timer = nil
        if let number {
            loop[Self.underWay].lookups[number] = nil
            lookups.leave(name, number)
        }
        (number, hold) = (nil, nil)
        withExtendedLifetime(dropped) {}
    }

    private func begin(_ modes: RunLoop.Modes, _ timeout: Duration, _ origin: RunLoop.Origin) {
        assert(number == nil && timer == nil, "a look-up begins twice")
        if name.isEmpty || name.utf8.contains(0) {
            let reason = name.isEmpty ? "the name is empty" : "a zero byte would end the name early"
            let failure = HostResolver.LookupError(.invalidName, name: name, reason: reason)
            return loop.perform(inModes: modes) { [self] in finish(.failure(failure)) }
        }
        if case .success(let addresses) = HostResolver.find(name, flags: AI_NUMERICHOST) {
            return loop.perform(inModes: modes) { [self] in finish(.success(addresses)) }
        }
        let timer = Timer(at: loop.now + timeout, origin: origin) { [self] _ in
            finish(.failure(.init(.timedOut, name: name, reason: "no answer within \(timeout)")))
        }
        timer.name = "looking up \(name)"
        loop.add(timer, forMode: modes)
        self.timer = timer
        // The look-up stays on its thread, and only its number crosses threads.
        let remote = loop.remote
        if finder == nil { hold = loop.holdTime(for: "the addresses of \(name)") }
        number = lookups.join(name, finder ?? { HostResolver.find($0) }) { number, result in
            remote.perform(inModes: modes) { $0[Self.underWay].lookups[number]?.finish(result) }
        }
        assert(loop[Self.underWay].lookups[number!] == nil, "two look-ups have one number")
        loop[Self.underWay].lookups[number!] = self
    }

    private func finish(_ result: Result<[Endpoint], HostResolver.LookupError>) {
        guard let completion else { return }
        cancel()
        assert(number == nil && timer == nil, "a look-up that has ended goes on")
        completion(result.map { $0.map { $0.with(port: port) } })
    }

    private static let underWay = RunLoop.Local { _ in LookupsUnderWay() }
}

/// The pending look-ups of a loop.
private final class LookupsUnderWay {
    var lookups: [Int: HostLookup] = [:]
}

@available(*, unavailable, message: "a look-up belongs to its loop's thread")
extension HostLookup: Sendable {}

/// The look-ups of names for the loops of a world. Any thread.
@_spi(Ports) public protocol HostLookups: Sendable {
    /// A closure that receives its own number and the result, on any thread.
    typealias Asker = @Sendable (Int, Result<[Endpoint], HostResolver.LookupError>) -> Void

    /// Requests the addresses of a name.
    ///
    /// - Parameter find: finds the addresses on a thread that it may block.
    /// - Returns: the asker's number.
    func join(_ name: String, _ find: @escaping HostResolver.Finder, _ asker: @escaping Asker) -> Int

    /// Removes an asker. A look-up that has begun continues without askers, so that a later request for the name needs
    /// no further thread.
    func leave(_ name: String, _ number: Int)
}

/// The look-ups of a world, in which requests for the same name share a pending look-up.
final class SharedLookups: HostLookups {
    private struct State {
        var lookups: [String: Shared] = [:]
        var last = 0
        /// Created for the first look-up for which the system has threads.
        var pool: LoopThreadPool?
    }

    private struct Shared {
        var askers: [Int: Asker] = [:]
        var hasBegun = false
    }

    private let world: any World
    private let state = Locked(State())

    init(in world: any World) {
        self.world = world
    }

    func join(_ name: String, _ find: @escaping HostResolver.Finder, _ asker: @escaping Asker) -> Int {
        let (number, isFirst, pool) = state.withLock { state in
            state.last += 1
            let isFirst = state.lookups[name] == nil
            let pool = Result { try state.pool ?? LoopThreadPool(starting: "resolver", maximumThreads: 8, in: world) }
            state.pool = try? pool.get()
            if state.pool != nil { state.lookups[name, default: Shared()].askers[state.last] = asker }
            return (state.last, isFirst, pool)
        }
        switch pool {
        case .success(let pool) where isFirst:
            DeliveryQueue.pool(pool).asyncAfter(.zero) { [self] in lookUp(name, find) }
        case .success: break
        case .failure(let error): asker(number, .failure(.init(.unavailable, name: name, reason: "\(error)")))
        }
        return number
    }

    func leave(_ name: String, _ number: Int) {
        state.withLock { state in
            state.lookups[name]?.askers[number] = nil
            if let shared = state.lookups[name], shared.askers.isEmpty, !shared.hasBegun { state.lookups[name] = nil }
        }
    }

    /// Looks up a name, unless no asker is left or the look-up has already begun.
    private func lookUp(_ name: String, _ find: HostResolver.Finder) {
        let hadBegun = state.withLock { state in
            defer { state.lookups[name]?.hasBegun = true }
            return state.lookups[name]?.hasBegun
        }
        guard hadBegun == false else { return }
        let result = find(name)
        let askers = state.withLock { $0.lookups.removeValue(forKey: name)?.askers ?? [:] }
        for (number, asker) in askers.sorted(by: { $0.key < $1.key }) { asker(number, result) }
    }
}
