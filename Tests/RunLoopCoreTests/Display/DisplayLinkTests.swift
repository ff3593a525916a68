import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@_spi(Ports) @testable import RunLoopCore

@Suite("Display links")
struct DisplayLinkTests {
    // MARK: When

    @Test("the first call is in the first frame after adding, not at once (R205)")
    func firstFrame() {
        withSimulation { simulation in
            let loop = simulation.loop
            let onBoundary = RecordedLink(loop)
            loop.run(in: .default, until: ns(16_666_665))
            #expect(onBoundary.frames == [])
            loop.run(in: .default, until: ns(16_666_666))
            #expect(onBoundary.frames == [1])

            simulation.spend(.milliseconds(10))
            let between = RecordedLink(loop)
            loop.run(in: .default, until: frame(3))
            #expect(between.frames == [2, 3])
            #expect(onBoundary.frames == [1, 2, 3])
        }
    }

    @Test("a link is called once in every frame, on its loop's thread, exactly at the frame's date (R196, R198)")
    func everyFrame() {
        withSimulation { simulation in
            let loop = simulation.loop
            var late: Duration = .zero
            let recorded = RecordedLink(loop) { link in late += loop.now - link.timestamp }
            loop.run(in: .default, until: frame(600))
            #expect(recorded.frames == Array(1...600))
            #expect(recorded.targets == Array(2...601))
            #expect(recorded.link.totalDroppedFrames == 0)
            #expect(late == .zero)
            #expect(loop.statistics.fires == 600)
        }
    }

    @Test("a link runs on every grid without a drift", arguments: [24, 30, 60, 90, 120, 144, 240])
    func everyRate(rate: Int) {
        withSimulation { simulation in
            let loop = simulation.loop
            // A billion frames have passed already.
            let start = ns(-1_000_000_000 * (1_000_000_000 / Int64(rate)))
            let clock = FrameClock(framesPerSecond: rate, start: start)
            let first = clock.frame(after: loop.now)
            let recorded = RecordedLink(loop, clock: clock)
            var dates: [RunLoop.Instant] = []
            let other = DisplayLink(clock: clock) { _ in dates.append(loop.now) }
            other.add(to: loop, forMode: .default)
            loop.run(in: .default, until: ms(10_000))
            #expect(recorded.frames == Array(first..<first + 10 * Int64(rate)))
            #expect(dates.last == ms(10_000))
            #expect(dates == recorded.frames.map(clock.date))
        }
    }

    @Test("timestamp is the frame's date and not the time of the call, and not later than now (R198)")
    func timestamp() {
        withSimulation { simulation in
            let loop = simulation.loop
            var seen: [RunLoop.Instant] = []
            let recorded = RecordedLink(loop) { link in seen += [link.timestamp, loop.now] }
            loop.timer(16) { _ in simulation.spend(.milliseconds(4)) }
            loop.run(in: .default, until: ms(30))
            #expect(seen == [frame(1), ms(20)])
            #expect(recorded.drops == [0])
        }
    }

    @Test("timestamp and targetTimestamp do not change during a call, regardless of settings and its length (R198)")
    func constantDuringCall() {
        withSimulation { simulation in
            let loop = simulation.loop
            var seen: [RunLoop.Instant] = []
            let recorded = RecordedLink(loop) { link in
                seen += [link.timestamp, link.targetTimestamp]
                link.preferredFramesPerSecond = 20
                simulation.spend(.milliseconds(100))
                seen += [link.timestamp, link.targetTimestamp]
                link.invalidate()
                seen += [link.timestamp, link.targetTimestamp]
            }
            loop.run(in: .default)
            #expect(seen == [frame(1), frame(2), frame(1), frame(2), frame(1), frame(2)])
            #expect(recorded.link.timestamp == frame(1))
        }
    }

    @Test("before the first call the timestamps are the clock's start")
    func beforeFirstCall() {
        let link = DisplayLink(clock: FrameClock(start: ms(7))) { _ in }
        #expect(link.timestamp == ms(7))
        #expect(link.targetTimestamp == ms(7))
        #expect(link.droppedFrames == 0)
    }

    @Test("duration is one frame at the maximum rate, regardless of the link's own rate (R199)")
    func duration() {
        let link = DisplayLink(clock: FrameClock(framesPerSecond: 120)) { _ in }
        link.preferredFramesPerSecond = 30
        #expect(link.duration == .seconds(1) / 120)
        #expect(link.maximumFramesPerSecond == 120)
    }

    // MARK: Modes

    @Test("adding a link twice changes nothing, and one removal undoes it (R193, R194)")
    func addedTwice() {
        withSimulation { simulation in
            let loop = simulation.loop
            let recorded = RecordedLink(loop)
            recorded.link.add(to: loop, forMode: .default)
            loop.run(in: .default, until: frame(2))
            #expect(recorded.frames == [1, 2])
            recorded.link.remove(from: loop, forMode: .default)
            #expect(loop.isEmpty(.default))
            recorded.link.remove(from: loop, forMode: .default)
            loop.checkInvariants()
        }
    }

    @Test("a link in several modes is called while one of them runs, and leaves each by itself (R193, R194)")
    func severalModes() {
        withSimulation { simulation in
            let loop = simulation.loop
            let recorded = RecordedLink(loop, in: [.default, .tracking])
            loop.run(in: .default, until: frame(1))
            loop.run(in: .tracking, until: frame(2))
            #expect(recorded.frames == [1, 2])
            recorded.link.remove(from: loop, forMode: .default)
            #expect(loop.isEmpty(.default))
            loop.run(in: .tracking, until: frame(3))
            #expect(recorded.frames == [1, 2, 3])
        }
    }

    @Test("a link removed from its last mode is released by the loop, keeps its target, and can be added again (R194)")
    func addedAgain() {
        withSimulation { simulation in
            let loop = simulation.loop
            weak var stepper: Stepper?
            let link: DisplayLink
            do {
                let target = Stepper()
                stepper = target
                link = DisplayLink(target: target, selector: Stepper.step)
            }
            link.add(to: loop, forMode: .default)
            loop.run(in: .default, until: frame(2))
            link.remove(from: loop, forMode: .default)
            #expect(link.isValid)
            simulation.spend(.milliseconds(500))
            #expect(stepper?.steps == 2)
            link.add(to: loop, forMode: .default)
            loop.run(in: .default, until: frame(34))
            #expect(stepper?.steps == 4)
            #expect(link.totalDroppedFrames == 0)
            link.invalidate()
            #expect(stepper == nil)
        }
    }

    @Test("a link in the common modes is called in all of them, and in modes that join them later")
    func commonModes() {
        withSimulation { simulation in
            let loop = simulation.loop
            let recorded = RecordedLink(loop, in: .common)
            #expect(loop.isEmpty(.tracking))
            loop.addCommonMode(.tracking)
            loop.run(in: .tracking, until: frame(2))
            loop.run(in: .default, until: frame(3))
            #expect(recorded.frames == [1, 2, 3])
            recorded.link.remove(from: loop, forMode: .common)
            #expect(loop.isEmpty(.tracking))
            #expect(loop.isEmpty(.default))
            loop.checkInvariants()
        }
    }

    @Test("a link is in one loop at a time; once removed it can be added to another (R193)")
    func oneLoopAtATime() {
        withSimulation { outer in
            let first = outer.loop
            let recorded = RecordedLink(first)
            withSimulation { inner in
                let second = inner.loop
                recorded.link.remove(from: second, forMode: .default)
                recorded.link.remove(from: first, forMode: .default)
                recorded.link.add(to: second, forMode: .default)
                second.run(in: .default, until: frame(2))
                recorded.link.remove(from: second, forMode: .default)
            }
            #expect(recorded.frames == [1, 2])
            recorded.link.add(to: first, forMode: .default)
            first.run(in: .default, until: frame(1))
            #expect(recorded.frames == [1, 2, 1])
        }
    }

    @Test("a link keeps its mode from being empty, also when it is paused (R204)")
    func keepsModeAlive() {
        withSimulation { simulation in
            let loop = simulation.loop
            let recorded = RecordedLink(loop)
            #expect(!loop.isEmpty(.default))
            recorded.link.isPaused = true
            #expect(!loop.isEmpty(.default))
            #expect(loop.nextFireDate(forMode: .default) == nil)
            #expect(loop.run(in: .default) == .starved)
            #expect(loop.run(in: .default, until: ms(50)) == .timedOut)
            recorded.link.invalidate()
            #expect(loop.run(in: .default) == .finished)
        }
    }

    // MARK: Reports of the loop

    @Test("the trace names every frame, and the list of waits names the links")
    func reports() {
        withSimulation { simulation in
            let loop = simulation.loop
            var lines: [String] = []
            loop.trace = { if case .called(.displayLink, _, _, _) = $0 { lines.append("\($0)") } }
            let recorded = RecordedLink(loop, set: { $0.name = "scroll" })
            simulation.spend(.milliseconds(40))
            loop.run(in: .default, until: frame(3))
            #expect(lines == ["frame scroll at 0.050000000 dropped 2"])
            let origin = recorded.link.origin
            #expect(
                simulation.waits.map(\.what) == ["display link \"scroll\" (\(origin)) in default, due \(frame(4))"])
            recorded.link.isPaused = true
            #expect(simulation.waits.map(\.what) == ["display link \"scroll\" (\(origin)) in default, paused"])
            recorded.link.name = nil
            #expect(simulation.waits.map(\.what) == ["display link (\(origin)) in default, paused"])
        }
    }

    @Test("on the real clock a call is never early, and comes on the grid")
    func realClock() {
        let dates = Log<(Int, RunLoop.Instant)>()
        let early = Counter()
        let thread = LoopThread(name: "frames") { loop in
            let clock = FrameClock(framesPerSecond: 240, start: loop.now)
            DisplayLink.scheduledDisplayLink(clock: clock) { link in
                if loop.now < link.timestamp { early.add(1) }
                if clock.date(of: clock.frame(at: link.timestamp)) != link.timestamp { early.add(1) }
                dates.append((0, link.timestamp))
                if dates.entries.count == 40 { link.invalidate() }
            }
        }
        thread.join()
        #expect(early.value == 0)
        #expect(dates.entries.count == 40)
        #expect(zip(dates.entries, dates.entries.dropFirst()).allSatisfy { $0.1 < $1.1 })
    }
}
