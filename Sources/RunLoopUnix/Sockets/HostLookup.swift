internal import Glibc
package import RunLoopKit

/// A look-up of a name by ``HostResolver``. It belongs to the loop's thread and is not `Sendable`.
public final class HostLookup {
    private let name: String
    private let port: UInt16
    private let loop: RunLoop
    private var completion: ((Result<[Endpoint], HostResolver.Failure>) -> Void)?
    /// Its number among the look-ups of its world, once it takes part in one.
    private var number: Int?
    /// The finder of the loop's world; `nil` for the system's resolver.
    private lazy var finder = HostResolver.finder[loop.world]
    /// The look-ups of that world. Those of the system's resolver belong to the real world.
    private lazy var lookups: any HostLookups =
        HostResolver.lookups[loop.world] ?? SharedLookups.of[finder == nil ? RunLoop.realWorld : loop.world]
    /// Holds the time of a simulation while the system's resolver works.
    private var hold: (any TimeHold)?
    /// The timeout, which also gives the loop something to wait for.
    private var timer: Timer?

    /// Begins the look-up, and never reports the outcome before this has returned.
    init(
        _ name: String, _ port: UInt16, on loop: RunLoop, _ modes: RunLoop.Modes, timeout: Duration,
        _ origin: RunLoop.Origin, _ completion: @escaping (Result<[Endpoint], HostResolver.Failure>) -> Void
    ) {
        (self.name, self.port, self.loop, self.completion) = (name, port, loop, completion)
        begin(modes, timeout, origin)
    }

    /// Whether the outcome is still open.
    public var isPending: Bool { completion != nil }

    /// Gives up without calling anything, and releases the completion. A name that no other look-up asks for, and that
    /// no thread has begun to look up, is not looked up at all. Harmless once there is an outcome. Call it on the
    /// loop's thread.
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
        if name.isEmpty || name.utf8.contains(0) {
            let reason = name.isEmpty ? "a name is not empty" : "a zero byte would end the name early"
            let failure = HostResolver.Failure(.invalidName, name: name, reason: reason)
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
        // The look-up stays on its thread, under its number. Only the number travels.
        let remote = loop.remote
        if finder == nil { hold = loop.holdTime(for: "the addresses of \(name)") }
        number = lookups.join(name, finder ?? { HostResolver.find($0) }) { number, result in
            remote.perform(inModes: modes) { $0[Self.underWay].lookups[number]?.finish(result) }
        }
        loop[Self.underWay].lookups[number!] = self
    }

    private func finish(_ result: Result<[Endpoint], HostResolver.Failure>) {
        guard let completion else { return }
        cancel()
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

/// Those that look up names for the loops of a world. Any thread.
package protocol HostLookups: Sendable {
    /// Receives the result on any thread, with its own number.
    typealias Asker = @Sendable (Int, Result<[Endpoint], HostResolver.Failure>) -> Void

    /// Asks for the addresses of a name.
    ///
    /// - Parameter find: finds the addresses, on a thread that it may block.
    /// - Returns: the asker's number.
    func join(_ name: String, _ find: @escaping HostResolver.Finder, _ asker: @escaping Asker) -> Int

    /// Removes an asker. A look-up that has begun continues without askers, so that a later request for the name takes
    /// no other thread.
    func leave(_ name: String, _ number: Int)
}

/// The look-ups of a world. Pending look-ups of equal names are shared.
package final class SharedLookups: HostLookups {
    package static let of = WorldLocal { SharedLookups(in: $0) }

    private struct State {
        var lookups: [String: Shared] = [:]
        var last = 0
        /// Made with the first look-up for which the system has threads.
        var pool: LoopThreadPool?
    }

    private struct Shared {
        var askers: [Int: Asker] = [:]
        var hasBegun = false
    }

    private let world: any World
    private let state = Locked(State())

    private init(in world: any World) {
        self.world = world
    }

    package func join(_ name: String, _ find: @escaping HostResolver.Finder, _ asker: @escaping Asker) -> Int {
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

    package func leave(_ name: String, _ number: Int) {
        state.withLock { state in
            state.lookups[name]?.askers[number] = nil
            if let shared = state.lookups[name], shared.askers.isEmpty, !shared.hasBegun { state.lookups[name] = nil }
        }
    }

    /// Looks a name up, unless no asker is left, or it is being looked up.
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
