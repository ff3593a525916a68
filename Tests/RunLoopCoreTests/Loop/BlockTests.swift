import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@testable import RunLoopCore

@Suite("Blocks")
struct BlockTests {
    @Test("perform means the default mode only (R74)")
    func defaultMode() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            loop.perform { log("B") }
            loop.keepAlive(in: .tracking)
            loop.run(in: .tracking, until: ms(10))
            #expect(log.text == "")
            loop.run(in: .default)
            #expect(log.text == "B")
        }
    }

    @Test("a block of several modes runs once, in whichever runs first (R74, R76)")
    func severalModes() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            loop.perform(inModes: [.default, .tracking]) { log("B:\(loop.currentMode!)") }
            #expect(loop.run(in: .tracking) == .finished)
            #expect(loop.run(in: .default) == .finished)
            #expect(log.text == "B:tracking")
        }
    }

    @Test("a common block runs once in whichever common mode runs first (R24)")
    func commonModes() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            loop.perform(inModes: .common) { log("B:\(loop.currentMode!)") }
            #expect(loop.run(in: .tracking) == .finished)
            #expect(log.text == "")
            loop.addCommonMode(.tracking)
            #expect(loop.run(in: .tracking) == .finished)
            #expect(loop.run(in: .default) == .finished)
            #expect(log.text == "B:tracking")
        }
    }

    @Test("blocks run in the order given; those for other modes keep their place (R75)")
    func order() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            loop.perform(inModes: .default) { log("1d") }
            loop.perform(inModes: .tracking) { log("2t") }
            loop.perform(inModes: [.default, .tracking]) { log("3dt") }
            loop.perform(inModes: .tracking) { log("4t") }
            loop.perform(inModes: .default) { log("5d") }
            loop.run(in: .default)
            #expect(log.text == "1d 3dt 5d")
            loop.perform(inModes: .tracking) { log("6t") }
            loop.run(in: .tracking)
            #expect(log.text == "1d 3dt 5d 2t 4t 6t")
        }
    }

    @Test("a block is never run inside perform (R78)")
    func neverSynchronous() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            loop.perform {
                log("A<")
                loop.perform { log("B") }
                log("A>")
            }
            #expect(log.text == "")
            loop.run(in: .default)
            #expect(log.text == "A< A> B")
        }
    }

    @Test("a queued block keeps its mode from being empty until it is taken (R9, R13)")
    func keepsModeAlive() {
        withSimulation { simulation in
            let loop = simulation.loop
            #expect(loop.isEmpty(.default))
            loop.perform { #expect(loop.isEmpty(.default)) }
            #expect(!loop.isEmpty(.default))
            #expect(loop.isEmpty(.tracking))
            #expect(loop.run(in: .default) == .finished)
            #expect(loop.isEmpty(.default))
        }
    }

    @Test("a block for no mode at all is not queued (R156)")
    func noModes() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            loop.perform(inModes: []) { log("B") }
            loop.keepAlive()
            loop.run(in: .default, until: ms(10))
            #expect(log.text == "")
        }
    }

    @Test("the loop does not sleep while eligible blocks are queued: a chain of them takes no time")
    func chain() {
        withObservedLoop { _, loop, log in
            loop.timer(1000) { _ in log("T") }
            var links = 0
            func link() {
                links += 1
                if links < 100 { loop.perform(link) }
            }
            loop.perform(link)
            #expect(loop.run(in: .default, until: ms(10)) == .timedOut)
            #expect(links == 100)
            #expect(loop.statistics.waits == 1)
            #expect(log.entries.count { $0 == "BW" } == 1)
        }
    }

    @Test("blocks that a block queues wait for the next round of blocks (R56)")
    func roundsOfBlocks() {
        withObservedLoop { _, loop, log in
            loop.perform {
                log("1")
                loop.perform {
                    log("2")
                    loop.perform { log("3") }
                }
            }
            loop.run(in: .default)
            #expect(log.text == "E BT 1 2 BT 3 X")
        }
    }

    @Test("a run nested in a block does not see the rest of the batch, but sees blocks queued in that block (R80)")
    func nestedRunInBlock() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            loop.perform {
                log("1<")
                #expect(loop.run(in: .default) == .finished)
                #expect(loop.statistics.passes == 1)
                loop.perform { log("new") }
                #expect(loop.run(in: .default) == .finished)
                log("1>")
            }
            loop.perform { log("2") }
            loop.perform { log("3") }
            loop.run(in: .default)
            #expect(log.text == "1< new 1> 2 3")
            #expect(loop.statistics.blocks == 4)
        }
    }

    @Test("a block runs before the timers of its pass, however long they are due (R52)")
    func beforeTimers() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            loop.timer(0) { _ in log("T") }
            simulation.spend(.milliseconds(10))
            loop.perform { log("B") }
            loop.run(in: .default)
            #expect(log.text == "B T")
        }
    }

    @Test("blocks of a loop that has ended are released without running (R81)")
    func endedLoop() {
        let log = Log<String>()
        weak var kept: Token?
        withSimulation { simulation in
            let token = Token()
            kept = token
            simulation.loop.perform {
                token.touch()
                log("B")
            }
        }
        #expect(kept == nil)
        #expect(log.text == "")
    }

    @Test("a block is released once it has run")
    func letGo() {
        withSimulation { simulation in
            let loop = simulation.loop
            loop.keepAlive()
            weak var kept: Token?
            do {
                let token = Token()
                kept = token
                loop.perform { token.touch() }
            }
            #expect(kept != nil)
            loop.perform(inModes: .tracking) {}
            loop.run(in: .default, until: .distantPast)
            #expect(kept == nil)
        }
    }

    @Test("a block posted from another thread wakes the loop, and blocks keep the order of their posts")
    func fromAnotherThread() {
        withSimulation { simulation in
            let loop = simulation.loop
            loop.keepAlive()
            let remote = loop.remote
            let dates = Log<(Int, RunLoop.Instant)>()
            let thread = LoopThread(name: "other") { other in
                other.perform(at: ms(20)) {
                    for index in 0..<5 { remote.perform { dates.append((index, $0.now)) } }
                }
            }
            loop.run(in: .default, until: ms(100))
            #expect(dates.entries.map(\.0) == [0, 1, 2, 3, 4])
            #expect(dates.entries.allSatisfy { $0.1 == ms(20) })
            thread.join()
        }
    }

    @Test("a block posted for another mode waits for it, and does not keep the loop awake")
    func postedForAnotherMode() {
        withSimulation { simulation in
            let loop = simulation.loop
            loop.keepAlive()
            let count = Counter()
            loop.remote.perform(inModes: .tracking) { _ in count.add(1) }
            loop.run(in: .default, until: ms(50))
            #expect(count.value == 0)
            #expect(loop.statistics.passes == 1)
            loop.run(in: .tracking)
            #expect(count.value == 1)
        }
    }

    // MARK: Turns

    @Test("a turn of blocks is cut after 1,024, timers and sources have theirs, and the rest continues in order")
    func cutByCount() {
        withSimulation { simulation in
            let loop = simulation.loop
            var performed: [Int] = []
            var (atFire, atSource) = (0, 0)
            let source = CustomSource { source in
                atSource = performed.count
                source.invalidate()
            }
            loop.add(source, forMode: .default)
            source.signal()
            loop.timer(0) { _ in atFire = performed.count }
            for number in 0..<5000 { loop.perform { performed.append(number) } }
            #expect(loop.run(in: .default) == .finished)
            #expect(atSource == RunLoop.blocksPerTurn)
            #expect(atFire == 2 * RunLoop.blocksPerTurn)
            #expect(performed == Array(0..<5000))
            #expect(loop.statistics.waits == 0)
        }
    }

    @Test("a turn of slow blocks is cut by the clock, and their run ends when its limit has passed")
    func cutByTime() {
        withSimulation { simulation in
            let loop = simulation.loop
            var count = 0
            for _ in 0..<1000 {
                loop.perform {
                    count += 1
                    simulation.spend(.milliseconds(1))
                }
            }
            var atFire = 0
            loop.timer(20) { _ in atFire = count }
            for index in 1...9 {
                let begin = loop.now
                #expect(loop.run(in: .default, until: begin + .milliseconds(50)) == .timedOut)
                #expect(loop.now - begin < .milliseconds(70), "run \(index)")
            }
            #expect((20...40).contains(atFire))
            #expect(loop.run(in: .default) == .finished)
            #expect(count == 1000)
        }
    }

    @Test("a poll leaves blocks beyond its turns for the next poll")
    func cutPoll() {
        withSimulation { simulation in
            let loop = simulation.loop
            for _ in 0..<5000 { loop.perform {} }
            for done in [2048, 4096, 5000] {
                loop.poll()
                #expect(loop.statistics.blocks == done)
            }
            #expect(loop.poll() == .finished)
        }
    }

    @Test("however many blocks were posted before a stop, they run before the run ends (R84)")
    func manyBeforeStop() {
        withSimulation { simulation in
            let loop = simulation.loop
            loop.keepAlive()
            for _ in 0..<5000 { loop.remote.perform { _ in } }
            loop.remote.stop()
            #expect(loop.run(in: .default) == .stopped)
            #expect(loop.statistics.blocks == 5000)

            loop.perform { loop.stop() }
            for _ in 1..<5000 { loop.perform {} }
            #expect(loop.run(in: .default) == .stopped)
            #expect(loop.statistics.blocks == 10_000)
        }
    }

    @Test("a nested run sees nothing of a batch longer than a turn, and runs blocks from the block around it (R80)")
    func nestedRunInLongBatch() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            loop.perform {
                #expect(loop.run(in: .default) == .finished)
                loop.perform { log("new") }
                #expect(loop.run(in: .default) == .finished)
                #expect(loop.statistics.blocks == 1)
                log("outer")
            }
            for _ in 0..<3000 { loop.perform {} }
            loop.perform { log("last") }
            loop.run(in: .default)
            #expect(log.text == "new outer last")
        }
    }

    @Test("a thread's loop runs blocks posted before its stop, though a nested run took both in")
    func stopTakenInByNestedRun() {
        withSimulation { _ in
            let count = Counter()
            let thread = LoopThread(name: "worker") { loop in
                loop.keepAlive()
                let remote = loop.remote
                // In the last turn of a pass.
                loop.timer(0) { _ in
                    loop.perform {
                        for _ in 0..<5000 { remote.perform { _ in count.add() } }
                        remote.stop()
                        loop.keepAlive(in: .tracking)
                        loop.run(in: .tracking, until: .distantPast)
                    }
                }
            }
            thread.join()
            #expect(count.value == 5000)
        }
    }

    // MARK: Waiting blocks

    @Test("a pass examines one lane, however many blocks wait for another mode")
    func oneLane() {
        withSimulation { simulation in
            let loop = simulation.loop
            loop.keepAlive()
            for _ in 0..<100_000 { loop.perform(inModes: .tracking) {} }
            loop.run(in: .default, until: ms(10))
            let (lanes, count) = (loop.blocks.laneCount, loop.blocks.count)
            #expect(lanes == 1)
            #expect(count == 100_000)
            loop.run(in: .tracking)
            #expect(loop.statistics.blocks == 100_000)
        }
    }

    @Test("blocks for a thousand different modes leave few lanes behind")
    func lanesGoAgain() {
        withSimulation { simulation in
            let loop = simulation.loop
            let modes = (0..<1000).map { RunLoop.Mode("lane \($0)") }
            for mode in modes { loop.perform(inModes: RunLoop.Modes(mode)) {} }
            loop.run(in: modes[0])
            let most = loop.blocks.laneCount
            #expect(most == 1000)
            for mode in modes { loop.run(in: mode) }
            #expect(loop.statistics.blocks == 1000)
            let left = loop.blocks.laneCount
            #expect(left <= BlockLanes<RunLoop>.keptLanes)
        }
    }

    @Test("memory taken by a burst of posts is given back when they have run")
    func memoryOfBurst() {
        withSimulation { simulation in
            let loop = simulation.loop
            // Memory of each of the two that the mailbox and the loop exchange.
            for _ in 0..<2 {
                for _ in 0..<100_000 { loop.remote.perform(inModes: .default) { _ in } }
                loop.run(in: .default)
                let (mail, blocks) = (loop.mail.blocks.capacity, loop.blocks.capacity)
                #expect(mail <= FIFO<Block<RunLoop>>.keptCapacity)
                #expect(blocks <= 2 * FIFO<Block<RunLoop>>.keptCapacity)
            }
            #expect(loop.statistics.blocks == 200_000)
        }
    }

    @Test("a queue that is never quite empty takes no more room than its waiting elements need")
    func queueStaysSmall() {
        var queue = FIFO<Int>()
        for number in 0..<3 { queue.append(number) }
        for number in 3..<2000 {
            queue.append(number)
            let first = queue.popFirst()
            #expect(first == number - 3)
        }
        let capacity = queue.capacity
        #expect(capacity == 8)
    }
}
