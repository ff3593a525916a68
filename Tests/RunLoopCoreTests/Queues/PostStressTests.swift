import Glibc
@_spi(Ports) import RunLoopCore
import RunLoopKit
import TestSupport
import Testing

/// A block that was posted.
private struct Post: Sendable, Hashable {
    let sender: Int
    let number: Int
    let modes: Int
}

/// The life of one loop that several threads post to, until one of them stops it in the middle.
private final class Life: Sendable {
    /// The last mode never runs. Only the first and the second have runs of their own, so that a nested run cannot
    /// overtake its outer run.
    static let modes: [RunLoop.Modes] = [.common, .tracking, [.tracking, .default], "nobody runs it"]
    static let senders = 3
    static let posts = 150

    private let seed: UInt64
    private var hasNestedRuns: Bool { seed.isMultiple(of: 2) }
    let thread: LoopThread
    private let loopNumber = Locked<UInt>(0)

    let performed = Log<Post>()
    let accepted = Log<Post>()
    let beforeStop = Log<Post>()
    let letGoElsewhere = Log<Post>()
    let faults = Log<String>()
    let alive = Counter()

    init(seed: UInt64) {
        self.seed = seed
        let loopNumber = loopNumber
        thread = LoopThread { loop in
            loopNumber.withLock { $0 = threadNumber() }
            loop.add(CustomSource(), forMode: .default)
        }
    }

    func run() {
        let senders = (0..<Self.senders).map { sender in PlainThread { self.send(sender) } }
        for sender in senders { sender.join() }
        thread.stop()
        thread.join()
        check()
    }

    private func send(_ sender: Int) {
        var random = SeededGenerator(seed: seed &* 31 &+ UInt64(sender))
        let stopAfter = sender == 0 ? Int.random(in: 0..<Self.posts, using: &random) : nil
        var isOpen = true
        for number in 0..<Self.posts {
            let post = Post(sender: sender, number: number, modes: Int.random(in: 0..<4, using: &random))
            let nests = hasNestedRuns && Int.random(in: 0..<8, using: &random) == 0
            if thread.remote.perform(inModes: Self.modes[post.modes], block(post, nests: nests)) {
                if !isOpen { faults("\(post) was accepted after one was refused") }
                accepted.append(post)
            } else {
                isOpen = false
            }
            if number == stopAfter {
                for post in accepted.entries where post.sender == sender { beforeStop.append(post) }
                thread.stop()
            }
            for _ in 0..<Int.random(in: 0..<200, using: &random) { _ = alive.value }
        }
    }

    /// Returns the only owner of a token, which records when and on which thread the block is released.
    private func block(_ post: Post, nests: Bool) -> @Sendable (RunLoop) -> Void {
        alive.add()
        let token = Token { [self] in
            alive.add(-1)
            if !isHere { letGoElsewhere.append(post) }
        }
        return { [self] loop in
            token.touch()
            performed.append(post)
            if !isHere { faults("\(post) ran on another thread") }
            if nests && loop.currentMode == .default { loop.run(in: .tracking, until: .distantPast) }
        }
    }

    private var isHere: Bool { loopNumber.withLock { $0 } == threadNumber() }

    private func check() {
        let performed = performed.entries
        if Set(performed).count != performed.count { faults("a block ran twice") }
        if !Set(letGoElsewhere.entries).isDisjoint(with: accepted.entries) {
            faults("a block that was accepted was let go on another thread")
        }
        if !Set(performed).isSubset(of: accepted.entries) { faults("a block ran that was refused") }
        if performed.contains(where: { $0.modes == 3 }) { faults("a block ran in another mode than its own") }
        if !Set(beforeStop.entries.filter { $0.modes == 0 }).isSubset(of: performed) {
            faults("a block that was posted before the stop did not run")
        }
        for sender in 0..<Self.senders {
            for modes in 0..<2 {
                let numbers = performed.filter { $0.sender == sender && $0.modes == modes }.map(\.number)
                if numbers != numbers.sorted() { faults("sender \(sender) was overtaken by itself") }
            }
        }
        if alive.value != 0 { faults("\(alive.value) blocks were never let go") }
    }
}

@Suite("Posts from several threads at once", .timeLimit(.minutes(15)))
struct PostStressTests {
    @Test("every accepted block runs once and in order, or is released by the loop's thread at its end (R6, R75, R81)")
    func lives() {
        for seed in 0..<UInt64(300) {
            let life = Life(seed: seed)
            life.run()
            guard life.faults.entries.isEmpty else {
                Issue.record("seed \(seed): \(life.faults.entries.prefix(5))")
                return
            }
        }
    }

    @Test("blocks of two modes by turns, however many, run in order when their mode does (R75)")
    func modesByTurns() {
        let result = onThread {
            let loop = RunLoop.current
            var random = SeededGenerator(seed: 1)
            var expected: [[Int]] = [[], []]
            let performed = Log<Int>()
            for number in 0..<5000 {
                let mode = Int.random(in: 0..<2, using: &random)
                expected[mode].append(number)
                loop.remote.perform(inModes: mode == 0 ? .default : .tracking) { _ in performed.append(number) }
            }
            loop.run(in: .tracking)
            loop.run(in: .default)
            return performed.entries == expected[1] + expected[0]
        }
        #expect(result)
    }

    @Test("a block is released before the next one runs")
    func letGo() {
        let alive = onThread {
            let loop = RunLoop.current
            let (alive, seen) = (Counter(), Log<Int>())
            for _ in 0..<3 {
                alive.add()
                let token = Token { alive.add(-1) }
                loop.remote.perform { _ in
                    token.touch()
                    seen.append(alive.value)
                }
            }
            loop.run(in: .default)
            return seen.entries + [alive.value]
        }
        #expect(alive == [3, 2, 1, 0])
    }

    @Test("under a flood of posts timers fire, runs end at their limits, and nothing is lost")
    func flood() {
        let faults = onThread {
            let loop = RunLoop.current
            let remote = loop.remote
            var faults: [String] = []
            let (posted, performed, isOver) = (Counter(), Counter(), Flag())
            func post(_ number: Int) {
                for _ in 0..<number { remote.perform { _ in performed.add() } }
                posted.add(number)
            }
            // However slow the other thread is, the first turn is a long one.
            post(10_000)
            let poster = PlainThread {
                while !isOver.isSet && posted.value < 200_000 {
                    for _ in 0..<100 { remote.perform { _ in performed.add() } }
                    posted.add(100)
                }
            }
            var fires = 0
            let timer = Timer(timeInterval: .milliseconds(1), repeats: true) { _ in fires += 1 }
            loop.add(timer, forMode: .default)
            for index in 1...9 {
                let result = loop.run(in: .default, until: loop.now + .milliseconds(10))
                if result != .timedOut { faults.append("run \(index) ended with \(result)") }
            }
            // Two turns of 1,024 blocks in each pass.
            let statistics = loop.statistics
            if statistics.blocks > 2048 * statistics.passes { faults.append("a pass ran too many: \(statistics)") }
            if fires == 0 { faults.append("the timer never fired") }
            isOver.set()
            poster.join()
            timer.invalidate()
            loop.run(in: .default)
            if performed.value != posted.value { faults.append("\(performed.value) of \(posted.value) ran") }
            return faults
        }
        #expect(faults == [])
    }
}
