import Glibc
import RunLoopCore
import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

/// A loop and a foreign descriptor, waited for in one call of `poll`.
private final class JointWait {
    private let loop: RunLoop
    let foreign = DescriptorPair()
    /// The numbers of calls that were to wait, and of calls that only looked.
    private(set) var (waits, looks) = (0, 0)
    /// The number of times that the foreign descriptor was found ready.
    private(set) var found = 0

    init(_ loop: RunLoop, inModes modes: Set<RunLoop.Mode> = [.default]) throws {
        self.loop = loop
        try loop.setPollFunction { [unowned self] descriptor, mayWait in
            guard modes.contains(loop.currentMode!) else { return .unserved }
            if mayWait { waits += 1 } else { looks += 1 }
            var set = [pollfd(fd: foreign.reader, events: Int16(POLLIN), revents: 0)]
            set.append(pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0))
            poll(&set, 2, mayWait ? -1 : 0)
            if set[0].revents != 0 {
                found += 1
                foreign.read()
                loop.perform { loop.stop() }
            }
            return set[1].revents != 0 ? .ready : .notReady
        }
    }
}

@Suite("A function that waits in a loop's place")
struct PollFunctionTests {
    @Test("a poll function waits exactly until the loop's dates, and for its descriptors and other threads")
    func waits() {
        let words: String = onThread {
            let loop = RunLoop.current
            let joint = try! JointWait(loop)
            let (words, own) = (Log<String>(), DescriptorPair())
            let date = loop.now + .microseconds(3_300)
            loop.add(
                Timer(fire: date, interval: .zero, repeats: false) { _ in
                    words(loop.now >= date ? "date" : "early")
                    own.write()
                }, forMode: .default)
            let remote = loop.remote
            var thread: PlainThread?
            let source = DescriptorSource(fileDescriptor: own.reader, events: .readable) { source, _ in
                words(own.read() == 1 ? "descriptor" : "nothing")
                source.invalidate()
                thread = PlainThread {
                    usleep(2_000)
                    remote.perform { _ in words("post") }
                    remote.perform { $0.stop() }
                }
                // Keeps the loop from finishing earlier.
                loop.perform(afterDelay: .seconds(60)) {}
            }
            try! loop.add(source, forMode: .default)
            words("\(loop.run(in: .default))")
            thread?.join()
            // One wait each, and at most one in vain.
            words(joint.waits <= 4 ? "\(joint.found)" : "\(joint.waits) waits")
            try! loop.setPollFunction(nil)
            return words.text
        }
        #expect(words == "date descriptor post stopped 0")
    }

    @Test("other events that a poll function finds end the loop's sleep, and its posted blocks run in the same pass")
    func elsewhere() {
        let (passes, found): (Int, Int) = onThread {
            let loop = RunLoop.current
            let joint = try! JointWait(loop)
            loop.add(Timer(timeInterval: .seconds(3600), repeats: true) { _ in }, forMode: .default)
            joint.foreign.write()
            loop.run(in: .default)
            return (loop.statistics.passes, joint.found)
        }
        #expect(passes == 1 && found == 1)
    }

    @Test("a busy loop calls the poll function without a wait, and a run in another mode does not call it")
    func looks() {
        let counts: [Int] = onThread {
            let loop = RunLoop.current
            let joint = try! JointWait(loop)
            var left = 10
            func again() {
                left -= 1
                if left > 0 { loop.perform(again) } else { loop.stop() }
            }
            loop.perform(again)
            loop.run(in: .default)
            let (waits, looks) = (joint.waits, joint.looks)
            joint.foreign.write()
            loop.add(
                Timer(timeInterval: .milliseconds(2), repeats: false) { _ in loop.stop() }, forMode: .tracking)
            loop.run(in: .tracking)
            return [waits, looks, joint.waits, joint.looks, joint.found]
        }
        #expect(counts[0] == 0 && counts[1] >= 5 && counts[2...] == [0, counts[1], 0], "\(counts)")
    }

    @Test("a poll function can be removed, and a loop without a system ignores one")
    func removal() {
        let fires: Int = onThread {
            let loop = RunLoop.current
            _ = try! JointWait(loop)
            try! loop.setPollFunction(nil)
            var fires = 0
            loop.add(Timer(timeInterval: .milliseconds(1), repeats: false) { _ in fires += 1 }, forMode: .default)
            loop.run(in: .default)
            return fires
        }
        #expect(fires == 1)
        withSimulation { simulation in
            let loop = simulation.loop
            #expect(throws: RunLoop.GuestError.noSystem) { try loop.setPollFunction { _, _ in .ready } }
            #expect(throws: Never.self) { try loop.setPollFunction(nil) }
        }
    }

    @Test("a second poll function traps")
    func second() async {
        await #expect(processExitsWith: .failure) {
            onThread {
                for _ in 0..<2 { try! RunLoop.current.setPollFunction { _, _ in .unserved } }
            }
        }
    }
}
