import Glibc
@_spi(Ports) import RunLoopCore
import RunLoopKit
import RunLoopUnix
import TestSupport
import Testing

/// Everything that tasks do on loops, from eight threads, while the loops end and are replaced.
@Suite("Stress of tasks", .timeLimit(.minutes(5)))
struct TaskStressTests {
    /// In a process of its own: all of its descriptors are counted. `make stress` runs it for ten seconds under each
    /// sanitizer.
    @Test("tasks started and cancelled by eight threads, on loops that end, end once, and nothing is left or lost")
    func storms() async {
        await #expect(processExitsWith: .success) {
            let end = ContinuousClock.now + .seconds(amount(of: "STRESS_SECONDS", usually: 1))
            // Some descriptors are opened once and stay; Dispatch opens one for its first sleep.
            try await Task.sleep(for: .milliseconds(1))
            _ = await blow(seed: 0, turns: 20)
            var storms = 0
            repeat {
                alarm(200)
                let files = openFiles()
                let seed = UInt64.random(in: 0 ... .max)
                let faults = await blow(seed: seed, turns: 100)
                guard faults.isEmpty else {
                    Issue.record("seed \(seed): \(Set(faults).joined(separator: "; "))")
                    break
                }
                // A descriptor of the previous storm may have been closed only now.
                let isQuiet = eventually { openFiles().count <= files.count }
                #expect(isQuiet, "seed \(seed): \(openFiles()) were \(files)")
                storms += 1
            } while ContinuousClock.now < end
            print("\(storms) storms")
        }
    }
}

/// Runs a storm, and returns its failures.
private func blow(seed: UInt64, turns: Int) async -> [String] {
    let storm = Storm(seed: seed)
    await LoopThread(name: "storm") { _ in storm.blow(turns: turns) }.ended()
    return storm.faults.entries
}

/// An actor that lives on a loop.
private actor Resident {
    private let home: RunLoop.Executor
    private(set) var calls = 0
    nonisolated var unownedExecutor: UnownedSerialExecutor { home.serial.asUnownedSerialExecutor() }

    init(on home: RunLoop.Executor) {
        self.home = home
    }

    func call() {
        calls += 1
    }

    /// Sleeps in the actor before it counts.
    func call(after duration: Duration) async throws {
        try await home.remote.clock().sleep(for: duration)
        calls += 1
    }

    /// Reads in the actor.
    func read(_ talk: Talk, from parcel: Parcel) async throws {
        let connection = Connection(adopting: parcel.take(), on: RunLoop.installed!)
        defer { connection.close() }
        while let bytes = try await connection.read() { talk.receive(bytes) }
        talk.reachedEnd.set()
    }
}

/// A loop, from its beginning to its end.
private final class Life: Sendable {
    let thread = LoopThread(name: "home") { $0.add(CustomSource(), forMode: .common) }
    let resident: Resident
    /// The number of answered calls of the resident.
    let calls = Counter()
    /// The number of bodies that ran here, and of bodies whose tasks were notified.
    let (bodies, toldBodies) = (Counter(), Counter())
    let isEnding = Flag()
    /// The number of users of the loop; `nil` when it accepts no more.
    private let guests = Locked<Int?>(0)

    var remote: RunLoop.Remote { thread.remote }
    var executor: RunLoop.Executor { thread.remote.executor() }

    init() {
        resident = Resident(on: thread.remote.executor())
    }

    /// Keeps the loop running until ``leave()``; returns `false` if it is ending.
    func enter() -> Bool {
        !isEnding.isSet
            && guests.withLock { guests in
                guests = guests.map { $0 + 1 }
                return guests != nil
            }
    }

    func leave() {
        guests.withLock { $0! -= 1 }
    }

    /// Ends the loop, and everything that waits on it, as soon as it has no users.
    func end(_ faults: Log<String>) {
        isEnding.set()
        let hasEmptied = eventually {
            guests.withLock { guests in
                guard guests == 0 else { return false }
                guests = nil
                return true
            }
        }
        if !hasEmptied { faults("guests do not leave") }
        remote.perform { [self] _ in
            let counted = resident.assumeIsolated { $0.calls }
            if counted != calls.value { faults("\(counted) calls were counted, and \(calls.value) answered") }
        }
        thread.stop()
        thread.join()
    }
}

/// A descriptor on its way to a loop, closed if it does not arrive.
private final class Parcel: Sendable {
    private let descriptor: Locked<Int32?>

    init(_ descriptor: Int32) {
        self.descriptor = Locked(descriptor)
    }

    /// Takes the descriptor. Call this once.
    func take() -> Int32 {
        descriptor.withLock { descriptor in
            defer { descriptor = nil }
            return descriptor!
        }
    }

    deinit {
        if let descriptor = descriptor.withLock({ $0 }) { close(descriptor) }
    }
}

/// Bytes that one loop sends to another.
private final class Talk: Sendable {
    let length: Int
    /// The numbers of bytes that connections accepted and received.
    let (taken, received) = (Counter(), Counter())
    /// Set once the system has accepted all bytes.
    let isSent = Flag()
    let reachedEnd = Flag()
    private let faults: Log<String>

    init(length: Int, _ faults: Log<String>) {
        self.length = length
        self.faults = faults
    }

    static func byte(at position: Int) -> UInt8 {
        UInt8(truncatingIfNeeded: position &* 31 &+ position >> 8)
    }

    func receive(_ bytes: some Collection<UInt8>) {
        let start = received.value
        for (index, byte) in bytes.enumerated() where byte != Self.byte(at: start + index) {
            return faults("a byte at \(start + index) of \(length) is wrong")
        }
        received.add(bytes.count)
    }

    func check() {
        if received.value > taken.value { faults("\(received.value) of \(taken.value) bytes have come") }
        guard isSent.isSet else { return }
        if taken.value != length { faults("\(taken.value) of \(length) bytes were taken") }
        if reachedEnd.isSet && received.value != length { faults("\(received.value) of \(length) bytes have come") }
    }
}

private final class Storm: Sendable {
    let faults = Log<String>()
    private let seed: UInt64
    private let lives: [Locked<Life>]
    private let talks = Log<Talk>()
    /// The number of tasks of each kind that have not ended.
    private let running = Locked<[String: Int]>([:])
    private let cancels = Locked<[@Sendable () -> Void]>([])

    init(seed: UInt64) {
        self.seed = seed
        lives = (0..<4).map { _ in Locked(Life()) }
    }

    /// Runs the storm, and returns when everything has ended.
    func blow(turns: Int) {
        let threads = (0..<8).map { number in PlainThread { self.work(number, turns) } }
        for thread in threads { thread.join() }
        let limit = ContinuousClock.now + .seconds(60)
        while !runningTasks.isEmpty {
            if ContinuousClock.now > limit { return faults("these do not end: \(runningTasks)\n\(dumps)") }
            usleep(100)
        }
        for life in lives { life.withLock { $0 }.end(faults) }
        for talk in talks.entries { talk.check() }
    }

    private func work(_ number: Int, _ turns: Int) {
        var random = SeededGenerator(seed: seed &+ UInt64(number))
        for _ in 0..<turns {
            let life = lives.randomElement(using: &random)!.withLock { $0 }
            switch Int.random(in: 0..<16, using: &random) {
            case 0...1: sleep(life, &random)
            case 2: tick(life, &random)
            case 3...4: call(life, &random)
            case 5...6: run(life, &random)
            case 7...8: startOnLoop(life, &random)
            case 9...10: talk(from: life, to: lives.randomElement(using: &random)!.withLock { $0 }, &random)
            case 11: if number < lives.count, Int.random(in: 0..<8, using: &random) == 0 { replace(number) }
            default: cancelOne(&random)
            }
            // No more at a time than the machine can do.
            while runningTasks.values.reduce(0, +) > 500 { usleep(100) }
        }
    }

    private func replace(_ number: Int) {
        lives[number].withLock { $0 }.end(faults)
        let life = Life()
        lives[number].withLock { $0 = life }
    }

    // MARK: Tasks, and who cancels them

    private var runningTasks: [String: Int] { running.withLock { $0.filter { $0.value != 0 } } }

    /// Begins a task, and returns a closure that ends it.
    private func begin(_ kind: String) -> @Sendable () -> Void {
        running.withLock { $0[kind, default: 0] += 1 }
        let ends = Counter()
        return { [self] in
            if ends.add() != 1 { faults("a task ends twice") }
            running.withLock { $0[kind]! -= 1 }
        }
    }

    /// The contents of the loops.
    private var dumps: String {
        lives.compactMap { life in
            try? life.withLock { $0 }.remote.performAndWait { "\($0.dump())" }
        }.joined(separator: "\n")
    }

    /// Lets another thread cancel the task, perhaps.
    private func remember<Success, Failure>(_ task: Task<Success, Failure>) {
        cancels.withLock { $0.append { task.cancel() } }
    }

    private func cancelOne(_ random: inout SeededGenerator) {
        let cancel = cancels.withLock { cancels in
            // The oldest have ended long ago.
            if cancels.count > 64 { cancels.removeFirst(cancels.count - 64) }
            return cancels.isEmpty ? nil : cancels.remove(at: Int.random(in: 0..<cancels.count, using: &random))
        }
        cancel?()
    }

    /// Checks that a wait has failed for an actual reason.
    private func check(_ error: any Error, _ life: Life) {
        switch error {
        case is CancellationError where Task.isCancelled: break
        case RunLoop.WaitError.loopEnded("home") where life.isEnding.isSet: break
        default: faults("\(error)")
        }
    }

    // MARK: What tasks do

    private func sleep(_ life: Life, _ random: inout SeededGenerator) {
        let duration = Duration.microseconds(Int.random(in: 0...2000, using: &random))
        let tolerance = Duration.microseconds(Int.random(in: 0...500, using: &random))
        // A task that begins on the loop has to come before the end.
        let isGuest = Bool.random(using: &random) && life.enter()
        let end = begin("sleep")
        remember(
            Task(executorPreference: isGuest ? life.executor.task : nil) { [self] in
                if isGuest { life.leave() }
                let clock = life.remote.clock()
                let date = clock.now + duration
                do {
                    try await clock.sleep(until: date, tolerance: tolerance)
                    if clock.now < date { faults("a sleep was early") }
                } catch {
                    check(error, life)
                }
                end()
            })
    }

    private func tick(_ life: Life, _ random: inout SeededGenerator) {
        let interval = Duration.microseconds(Int.random(in: 20...500, using: &random))
        let end = begin("tick")
        remember(
            Task { [self] in
                let clock = life.remote.clock()
                var next = clock.now + interval
                var count = 0
                do {
                    for try await tick in clock.ticks(every: interval) {
                        if clock.now < tick.date || tick.date < next { faults("a tick was early") }
                        next = tick.date + interval * (tick.missed + 1)
                        count += 1
                        if count == 5 { break }
                    }
                } catch {
                    check(error, life)
                }
                end()
            })
    }

    /// Calls an actor of the loop.
    private func call(_ life: Life, _ random: inout SeededGenerator) {
        guard life.enter() else { return }
        let durations = (0..<5).map { _ in Duration.microseconds(Int.random(in: -300...300, using: &random)) }
        let end = begin("call")
        remember(
            Task(executorPreference: Bool.random(using: &random) ? life.executor.task : nil) { [self] in
                for duration in durations {
                    do {
                        if duration < .zero {
                            await life.resident.call()
                        } else {
                            try await life.resident.call(after: duration)
                        }
                        life.calls.add()
                    } catch {
                        check(error, life)
                    }
                }
                life.leave()
                end()
            })
    }

    /// Runs a body on the loop.
    private func run(_ life: Life, _ random: inout SeededGenerator) {
        let end = begin("run")
        remember(
            Task { [self] in
                do {
                    try await life.remote.run { _ in life.bodies.add() }
                    life.toldBodies.add()
                } catch {
                    check(error, life)
                }
                end()
            })
    }

    /// Starts a task of the loop, which starts another.
    private func startOnLoop(_ life: Life, _ random: inout SeededGenerator) {
        let duration = Duration.microseconds(Int.random(in: 0...500, using: &random))
        life.remote.perform { [self] loop in
            let end = begin("task")
            remember(
                loop.task { [self] in
                    await Task.yield()
                    let innerEnd = begin("inner task")
                    let inner = loop.task {
                        try await loop.clock.sleep(for: duration)
                    } then: { [self] in
                        if !life.remote.isCurrent { faults("a completion was called elsewhere") }
                        if case .failure(let error) = $0 { check(error, life) }
                        innerEnd()
                    }
                    remember(inner)
                    _ = await inner.result
                    try await loop.clock.sleep(for: duration)
                } then: { [self] in
                    if !life.remote.isCurrent { faults("a completion was called elsewhere") }
                    if case .failure(let error) = $0 { check(error, life) }
                    end()
                })
        }
    }

    /// Sends bytes from one loop to another, or to itself.
    private func talk(from sender: Life, to receiver: Life, _ random: inout SeededGenerator) {
        let talk = Talk(length: Int.random(in: 0...100_000, using: &random), faults)
        talks.append(talk)
        let seed = random.next()
        let sockets = makeSockets()
        let (near, far) = (Parcel(sockets.0), Parcel(sockets.1))
        sender.remote.perform { [self] in write(talk, to: near, seed, on: $0, of: sender) }
        if Bool.random(using: &random), receiver.enter() {
            let end = begin("actor that reads")
            remember(
                Task { [self] in
                    do { try await receiver.resident.read(talk, from: far) } catch { checkTalk(error, receiver) }
                    receiver.leave()
                    end()
                })
        } else {
            receiver.remote.perform { [self] in read(talk, from: far, seed, on: $0, of: receiver) }
        }
    }

    private func write(_ talk: Talk, to parcel: Parcel, _ seed: UInt64, on loop: RunLoop, of life: Life) {
        var random = SeededGenerator(seed: seed)
        var limits = Connection.Limits()
        limits.highWatermark = Int.random(in: 0...20_000, using: &random)
        limits.lowWatermark = limits.highWatermark / 2
        let connection = Connection(adopting: parcel.take(), on: loop, limits: limits)
        let end = begin("writer")
        let task = loop.task { [self] in
            try await connection.withStream { stream in
                while talk.taken.value < talk.length {
                    let start = talk.taken.value
                    let count = min(talk.length - start, Int.random(in: 1...30_000, using: &random))
                    let piece = (start..<start + count).map { Talk.byte(at: $0) }
                    // Another task continues a part that is cancelled.
                    let part = loop.task { try await stream.write(piece) }
                    remember(part)
                    do {
                        try await part.value
                        talk.taken.add(count)
                    } catch let error as Connection.WriteError {
                        talk.taken.add(error.written)
                        if case .closed(let error) = error.cause { throw error }
                    }
                }
            }
            talk.isSent.set()
        } then: { [self] in
            if case .failure(let error) = $0 { checkTalk(error, life) }
            end()
        }
        if Int.random(in: 0..<4, using: &random) == 0 { remember(task) }
    }

    private func read(_ talk: Talk, from parcel: Parcel, _ seed: UInt64, on loop: RunLoop, of life: Life) {
        var random = SeededGenerator(seed: seed &+ 1)
        let connection = Connection(adopting: parcel.take(), on: loop)
        let end = begin("reader")
        let task = loop.task { [self] in
            defer { connection.close() }
            var isAtEnd = false
            while !isAtEnd {
                let usesParser = Bool.random(using: &random)
                let part = loop.task { [self] in try await readPart(talk, connection, usesParser: usesParser) }
                remember(part)
                do { isAtEnd = try await !part.value } catch is CancellationError { try Task.checkCancellation() }
                if Int.random(in: 0..<10, using: &random) == 0 { try await loop.clock.sleep(for: .microseconds(100)) }
            }
            talk.reachedEnd.set()
        } then: { [self] in
            if case .failure(let error) = $0 { checkTalk(error, life) }
            end()
        }
        if Int.random(in: 0..<4, using: &random) == 0 { remember(task) }
    }

    /// - Returns: `false` at the end.
    private nonisolated(nonsending) func readPart(
        _ talk: Talk, _ connection: Connection, usesParser: Bool
    ) async throws -> Bool {
        if usesParser {
            let isMore = try await connection.receive { bytes in
                // Some of them arrive again.
                let used = bytes.count / 3 * 2 + 1
                bytes.extracting(0..<used).withUnsafeBufferPointer { talk.receive($0) }
                return used
            }
            if isMore { return true }
        }
        guard let bytes = try await connection.read(atMost: 5000) else { return false }
        talk.receive(bytes)
        return true
    }

    /// Checks the error of a conversation, which also ends when the other side has been cancelled, or has lost its
    /// loop.
    private func checkTalk(_ error: any Error, _ life: Life) {
        if error is Connection.ClosedError { return }
        check(error, life)
    }
}
