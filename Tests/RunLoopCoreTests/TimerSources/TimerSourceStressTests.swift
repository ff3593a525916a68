@_spi(Ports) import RunLoopCore
import RunLoopKit
import TestSupport
import Testing

/// A source that checks its own deliveries.
private final class Subject: Sendable {
    let source: TimerSource
    /// The thread of the source's queue, if that is no pool.
    let owner: LoopThread?
    private let state = Locked(State())
    private let alive: Counter
    private let suspensions = Counter()

    private struct State {
        var isInside = false
        var isCancelCalled = false
        /// `true` after a cancel has returned, on the owner's thread or on another.
        var isCancelledByOwner = false
        var isCancelled = false
        var lateBegins = 0
        var faults: [String] = []
    }

    init(_ queue: DeliveryQueue, owner: LoopThread?, alive: Counter) {
        source = TimerSource(queue: queue)
        self.owner = owner
        self.alive = alive
        setHandlers()
    }

    var faults: [String] { state.withLock { $0.faults } }

    private func token() -> Token {
        alive.add()
        return Token { [alive] in alive.add(-1) }
    }

    func setHandlers() {
        let (event, cancel) = (token(), token())
        // The object outlives the source, so that both may be watched.
        source.setEventHandler { [self] source in
            state.withLock { state in
                if state.isInside { state.faults.append("a delivery began inside another") }
                if state.isCancelCalled { state.faults.append("a delivery began after the cancel handler") }
                if state.isCancelledByOwner { state.faults.append("a delivery began after a cancel of the owner") }
                // For another thread, a decided delivery has begun.
                if state.isCancelled { state.lateBegins += 1 }
                if state.lateBegins > 1 { state.faults.append("deliveries began after a cancel") }
                if source.data < 1 { state.faults.append("a delivery of \(source.data) fires") }
                state.isInside = true
            }
            event.touch()
            state.withLock { $0.isInside = false }
        }
        source.setCancelHandler { [self] in
            state.withLock { state in
                if state.isInside { state.faults.append("the cancel handler was called inside a delivery") }
                if state.isCancelCalled { state.faults.append("the cancel handler was called twice") }
                state.isCancelCalled = true
            }
            cancel.touch()
        }
    }

    func suspend() {
        suspensions.add()
        source.suspend()
    }

    /// Cancels the source and lets it call its cancel handler, which a suspended one would owe forever.
    func finish() {
        cancel()
        source.activate()
        for _ in 0..<suspensions.value { source.resume() }
    }

    func cancel() {
        source.cancel()
        state.withLock { $0.isCancelled = true }
    }

    func cancelOnOwner() {
        guard let owner else { return cancel() }
        owner.remote.perform { [self] _ in
            source.cancel()
            state.withLock { $0.isCancelledByOwner = true }
        }
    }
}

/// The state shared by all threads of the test.
private final class Arena: Sendable {
    let seed: UInt64
    let alive = Counter()
    let registry = TimerRegistry()
    private let state = Locked(State())

    private struct State {
        var subjects: [Subject?] = Array(repeating: nil, count: 32)
        var items: [WorkItem?] = Array(repeating: nil, count: 32)
        var threads: [LoopThread]
        var pools: [LoopThreadPool]
        /// Subjects that have lost their place and were not cancelled then. Only a few: subjects that are always due
        /// would use up the processor.
        var displaced: [Subject?] = Array(repeating: nil, count: 4)
        var all: [Subject] = []

        init() {
            threads = (0..<2).map { _ in Arena.makeThread() }
            pools = (1...3).map { LoopThreadPool(name: "stress", maximumThreads: $0) }
        }
    }

    init(seed: UInt64) {
        self.seed = seed
    }

    static func makeThread() -> LoopThread {
        LoopThread(name: "stress") { $0.add(CustomSource(), forMode: .common) }
    }

    /// Performs one random deed.
    func act(_ generator: inout SeededGenerator) {
        let place = Int.random(in: 0..<32, using: &generator)
        let amount = Int.random(in: -200...900, using: &generator)
        let subject = state.withLock { $0.subjects[place] }
        switch Int.random(in: 0..<200, using: &generator) {
        case 0..<20: replaceSubject(at: place, &generator)
        case 20..<60:
            let interval = [nil, 0, 30, 100, 500].randomElement(using: &generator)!
            subject?.source.schedule(
                after: .microseconds(amount), repeating: interval.map { .microseconds($0) },
                leeway: .microseconds(amount / 4))
        case 60..<90: subject?.source.activate()
        case 90..<105: subject?.suspend()
        case 105..<125: subject?.source.resume()
        case 125..<130: subject?.cancel()
        case 130..<135: subject?.cancelOnOwner()
        case 135..<140: subject?.setHandlers()
        case 140..<144: subject?.source.setEventHandler(nil)
        case 144..<165: post(at: place, .microseconds(amount), &generator)
        case 165..<175: state.withLock { $0.items[place] }?.cancel()
        case 175..<190: schedule("\(place % 6)", abs(amount) + 1, &generator)
        case 190..<194: registry.cancel("\(place % 6)")
        case 194: registry.cancelAll()
        case 195: replaceThread(&generator)
        case 196: replacePool(&generator)
        default: _ = subject?.source.isCancelled
        }
    }

    private func queue(_ generator: inout SeededGenerator) -> (DeliveryQueue, LoopThread?) {
        let number = Int.random(in: 0..<5, using: &generator)
        let (threads, pools) = state.withLock { ($0.threads, $0.pools) }
        return number < 2 ? (.thread(threads[number]), threads[number]) : (.pool(pools[number - 2]), nil)
    }

    private func replaceSubject(at place: Int, _ generator: inout SeededGenerator) {
        let (queue, owner) = queue(&generator)
        let subject = Subject(queue, owner: owner, alive: alive)
        let old = state.withLock { state in
            state.all.append(subject)
            return exchange(&state.subjects[place], with: subject)
        }
        // Handlers hold their subject, which holds its source: only a cancel breaks the cycle.
        let isKept = Bool.random(using: &generator)
        let number = Int.random(in: 0..<4, using: &generator)
        let uncancelled = isKept ? state.withLock { exchange(&$0.displaced[number], with: old) } : old
        uncancelled?.cancel()
    }

    private func post(at place: Int, _ delay: Duration, _ generator: inout SeededGenerator) {
        let token = self.token()
        let item = queue(&generator).0.asyncAfter(delay) { token.touch() }
        let old = state.withLock { exchange(&$0.items[place], with: item) }
        withExtendedLifetime(old) {}
    }

    private func schedule(_ name: String, _ interval: Int, _ generator: inout SeededGenerator) {
        let token = self.token()
        let (queue, repeats) = (queue(&generator).0, Bool.random(using: &generator))
        try? registry.schedule(
            name, interval: .microseconds(interval), queue: queue, repeats: repeats, fireInstantly: repeats
        ) { token.touch() }
    }

    private func token() -> Token {
        alive.add()
        return Token { [alive] in alive.add(-1) }
    }

    private func replaceThread(_ generator: inout SeededGenerator) {
        let (new, place) = (Self.makeThread(), Int.random(in: 0..<2, using: &generator))
        let old = state.withLock { exchange(&$0.threads[place], with: new) }
        old.stop()
        old.join()
    }

    private func replacePool(_ generator: inout SeededGenerator) {
        let place = Int.random(in: 0..<3, using: &generator)
        let new = LoopThreadPool(name: "stress", maximumThreads: place + 1)
        let old = state.withLock { exchange(&$0.pools[place], with: new) }
        if Bool.random(using: &generator) {
            old.stop()
            old.join()
        }
    }

    /// Ends everything and returns the failures.
    func finish() -> [String] {
        let last = state.withLock { $0 }
        for subject in last.all {
            subject.finish()
        }
        registry.cancelAll()
        for thread in last.threads {
            thread.stop()
            thread.join()
        }
        for pool in last.pools {
            pool.stop()
            pool.join()
        }
        let faults = Set(last.all.flatMap(\.faults))
        state.withLock { state in
            state.subjects = []
            state.items = []
            state.displaced = []
            state.all = []
        }
        return faults.sorted()
    }
}

@Suite("Eight threads do everything at once", .timeLimit(.minutes(15)), .serialized)
struct TimerSourceStressTests {
    @Test("no delivery follows a cancel or runs inside another, and all captures are released")
    func stress() {
        let seed = UInt64.random(in: 0...UInt64.max)
        let arena = Arena(seed: seed)
        let end = ContinuousClock.now + .seconds(2)
        let deeds = Counter()
        let threads = (0..<8).map { number in
            PlainThread {
                var generator = SeededGenerator(seed: seed &+ UInt64(number))
                while ContinuousClock.now < end || deeds.value < 2000 {
                    for _ in 0..<20 { arena.act(&generator) }
                    deeds.add(20)
                }
            }
        }
        for thread in threads { thread.join() }
        #expect(arena.finish() == [], "seed \(seed)")
        let isEmpty = eventually("all is let go of, seed \(seed)") { arena.alive.value == 0 }
        #expect(isEmpty, "\(arena.alive.value) of \(deeds.value) left, seed \(seed)")
    }
}
