import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@_spi(Ports) @testable import RunLoopCore

private let drag: RunLoop.Mode = "drag"
private let period = Duration.milliseconds(16)

/// A display that begins a frame every 16 ms, in all modes, by a timer of the loop.
private final class Display {
    let frames = FrameSource(interval: period)
    private(set) var reported = 0
    let timer: Timer

    init(_ loop: RunLoop) {
        var report = {}
        timer = Timer(timeInterval: period, repeats: true) { _ in report() }
        loop.addCommonMode(drag)
        loop.add(timer, forMode: .common)
        report = { [unowned self] in
            reported += 1
            frames.frameBegan(at: loop.now)
        }
    }
}

@Suite("Frames reported by a host")
struct FrameSourceTests {
    @Test("a link is called while each frame is reported, with its date and the next one's")
    func calls() {
        withSimulation { simulation in
            let loop = simulation.loop
            let display = Display(loop)
            var (dates, targets) = ([RunLoop.Instant](), [Duration]())
            let link = DisplayLink(frames: display.frames) { link in
                #expect(link.timestamp == loop.now && link.droppedFrames == 0)
                dates.append(link.timestamp)
                targets.append(link.targetTimestamp - link.timestamp)
            }
            link.add(to: loop, forMode: .default)
            loop.run(in: .default, until: ms(1600))
            #expect(dates == (1...100).map { ms(16 * $0) })
            #expect(targets.allSatisfy { $0 == period })
            #expect(link.maximumFramesPerSecond == 63 && link.duration == period)
        }
    }

    @Test("during a run in another mode a link loses the frames, and a link in the common modes loses none")
    func modes() {
        withSimulation { simulation in
            let loop = simulation.loop
            let display = Display(loop)
            var (calls, common, lost) = (0, 0, [Int]())
            DisplayLink(frames: display.frames) { link in
                calls += 1
                if link.droppedFrames > 0 { lost.append(link.droppedFrames) }
            }.add(to: loop, forMode: .default)
            let other = DisplayLink(frames: display.frames) { _ in common += 1 }
            other.add(to: loop, forMode: .common)
            loop.run(in: .default, until: ms(160))
            loop.run(in: drag, until: ms(480))
            #expect(calls == 10 && common == 30)
            loop.run(in: .default, until: ms(800))
            #expect(calls == 30 && common == 50 && lost == [20])
            #expect(other.totalDroppedFrames == 0)
        }
    }

    @Test("30 of 60: a link at half the rate is called in every other frame, also after unreported frames")
    func rates() {
        withSimulation { simulation in
            let loop = simulation.loop
            let frames = FrameSource()
            var calls: [Int64] = []
            let link = DisplayLink(frames: frames) { _ in calls.append(frames.frame) }
            link.preferredFramesPerSecond = 30
            link.add(to: loop, forMode: .default)
            loop.perform {
                for frame in [1, 2, 3, 4, 5, 9, 10, 11, 12] {
                    let date = RunLoop.Instant(nanoseconds: Int64(frame) * 16_666_667)
                    simulation.spend(date - simulation.now)
                    frames.frameBegan(at: date)
                }
            }
            loop.run(in: .default, until: ms(1))
            #expect(calls == [1, 3, 5, 9, 11])
            #expect(link.totalDroppedFrames == 1)
        }
    }

    @Test("a rate that changes is followed, and so is a display whose frames come unevenly")
    func changingRate() {
        withSimulation { simulation in
            let loop = simulation.loop
            let frames = FrameSource()
            let link = DisplayLink(frames: frames) { _ in }
            link.add(to: loop, forMode: .default)
            loop.perform(at: ms(49)) {
                frames.frameBegan(at: ms(10), interval: .milliseconds(8))
                #expect(link.targetTimestamp == ms(18) && link.maximumFramesPerSecond == 125)
                frames.frameBegan(at: ms(19))
                frames.frameBegan(at: ms(25))
                #expect(link.totalDroppedFrames == 0)
                frames.frameBegan(at: ms(49), interval: .milliseconds(12))
                #expect(link.droppedFrames == 1)
                // Reported twice, and late.
                frames.frameBegan(at: ms(49))
                frames.frameBegan(at: ms(48))
                #expect(frames.frame == 5 && link.timestamp == ms(49))
            }
            loop.run(in: .default, until: ms(50))
        }
    }

    @Test("a source is wanted while a link that is not paused is in a loop")
    func wanted() {
        withSimulation { simulation in
            let loop = simulation.loop
            let frames = FrameSource()
            var changes: [Bool] = []
            frames.wantedHandler = { changes.append($0.isWanted) }
            var calls = 0
            let link = DisplayLink(frames: frames) { _ in calls += 1 }
            #expect(!frames.isWanted)
            link.add(to: loop, forMode: .default)
            link.add(to: loop, forMode: RunLoop.Modes(drag))
            #expect(changes == [true])
            link.isPaused = true
            #expect(changes == [true, false])
            loop.perform { frames.frameBegan(at: ms(16)) }
            loop.run(in: .default, until: ms(20))
            #expect(calls == 0)
            link.isPaused = false
            loop.perform { frames.frameBegan(at: ms(32)) }
            loop.run(in: .default, until: ms(40))
            #expect(calls == 1 && link.totalDroppedFrames == 0)
            link.remove(from: loop, forMode: .default)
            #expect(frames.isWanted)
            link.remove(from: loop, forMode: RunLoop.Modes(drag))
            #expect(changes == [true, false, true, false])
            link.add(to: loop, forMode: .default)
            link.invalidate()
            #expect(changes.count == 6 && !frames.isWanted)
        }
    }

    @Test("a frame that a host reports calls the links of the mode in which the guest waits")
    func guestsMode() {
        withSimulation { simulation in
            let loop = simulation.loop
            let frames = FrameSource()
            var calls: [String] = []
            for mode in [RunLoop.Mode.default, .tracking] {
                DisplayLink(frames: frames) { _ in calls.append("\(mode)") }.add(to: loop, forMode: RunLoop.Modes(mode))
            }
            /// The links that are called in a frame.
            func report() -> [String] {
                simulation.spend(period)
                calls = []
                frames.frameBegan(at: simulation.now)
                return calls
            }
            var guest: RunLoop.Guest? = loop.makeGuest(in: .tracking)
            #expect(report() == ["tracking"])
            // Also when the loop was used meanwhile, and not prepared again.
            #expect(report() == ["tracking"])
            guest!.run(in: .default)
            #expect(report() == ["default"])
            loop.perform {
                #expect(report() == ["default"])
                // The handler runs the host, which runs the guest.
                guest!.prepare(in: .tracking)
                #expect(report() == ["tracking"])
                loop.perform(inModes: .tracking) { #expect(report() == ["tracking"]) }
                guest!.run(in: .tracking)
                #expect(report() == ["tracking"])
            }
            guest!.run(in: .default)
            #expect(report() == ["default"])
            guest = nil
            #expect(report() == [])
        }
    }

    @Test("a future date counts as now, is reported as ignored, and delays no later frame")
    func ahead() {
        withSimulation { simulation in
            let loop = simulation.loop
            var ignored: [String] = []
            loop.trace = { if case .ignored(let what) = $0 { ignored.append(what) } }
            let frames = FrameSource(interval: period)
            var dates: [RunLoop.Instant] = []
            let link = DisplayLink(frames: frames) { dates.append($0.timestamp) }
            link.add(to: loop, forMode: .default)
            for (frame, date) in [16, 3_600_000, 48, 64].enumerated() {
                loop.perform(at: ms(Int64(16 * (frame + 1)))) { frames.frameBegan(at: ms(Int64(date))) }
            }
            loop.run(in: .default, until: ms(80))
            #expect(dates == ([16, 32, 48, 64] as [Int64]).map { ms($0) })
            #expect(link.totalDroppedFrames == 0)
            #expect(
                ignored == [
                    "a frame was reported for 3600.000000000, which is in the future; it counts for 0.032000000"
                ])
        }
    }

    @Test("a future date counts as now even before the source has a link")
    func aheadWithoutLinks() {
        withSimulation { simulation in
            let loop = simulation.loop
            let frames = FrameSource(interval: period)
            frames.frameBegan(at: ms(3_600_000))
            var calls = 0
            DisplayLink(frames: frames) { _ in calls += 1 }.add(to: loop, forMode: .default)
            loop.perform(at: ms(16)) { frames.frameBegan(at: ms(16)) }
            loop.run(in: .default, until: ms(20))
            #expect(calls == 1)
        }
    }

    @Test("a frame that is less than an interval ahead of the loop keeps its date")
    func smoothedDates() {
        withSimulation { simulation in
            let loop = simulation.loop
            let frames = FrameSource(interval: period)
            var dates: [RunLoop.Instant] = []
            DisplayLink(frames: frames) { dates.append($0.timestamp) }.add(to: loop, forMode: .default)
            loop.perform(at: ms(16)) { frames.frameBegan(at: ms(20)) }
            loop.perform(at: ms(33)) { frames.frameBegan(at: ms(36)) }
            loop.run(in: .default, until: ms(40))
            #expect(dates == [ms(20), ms(36)])
        }
    }

    @Test("frames that no link wanted are not counted as dropped")
    func countsWhileWanted() {
        withSimulation { simulation in
            let loop = simulation.loop
            let frames = FrameSource(interval: period)
            let link = DisplayLink(frames: frames) { _ in }
            link.add(to: loop, forMode: .default)
            loop.perform(at: ms(16)) {
                frames.frameBegan(at: ms(16))
                link.isPaused = true
            }
            // No frame was wanted for ten seconds, and none was reported.
            loop.perform(at: ms(10_000)) { link.isPaused = false }
            loop.perform(at: ms(10_016)) { frames.frameBegan(at: ms(10_016)) }
            loop.run(in: .default, until: ms(10_020))
            #expect(link.timestamp == ms(10_016) && link.totalDroppedFrames == 0)
        }
    }

    /// The changes of `hasStopped`, with their times.
    private func changes(_ loop: RunLoop, _ frames: FrameSource) -> Log<String> {
        let log = Log<String>()
        frames.stoppedHandler = { [unowned loop, unowned frames] source in
            #expect(source === frames)
            log("\(source.hasStopped ? "stopped" : "on") \(loop.now.word)")
        }
        return log
    }

    @Test("a source reports once that no frame has come for its timeout, and that frames come again")
    func stops() {
        withSimulation { simulation in
            let loop = simulation.loop
            let display = Display(loop)
            var calls = 0
            for _ in 0..<2 {
                DisplayLink(frames: display.frames) { _ in calls += 1 }.add(to: loop, forMode: .default)
            }
            let log = changes(loop, display.frames)
            loop.perform(at: ms(2001)) { display.timer.fireDate = ms(6000) }
            loop.run(in: .default, until: ms(8000))
            #expect(log.entries == ["stopped 3000", "on 6000"])
            display.frames.timeout = .milliseconds(100)
            display.timer.invalidate()
            loop.run(in: .default, until: ms(9000))
            #expect(log.entries.count == 3 && log.entries[2] == "stopped 8100")
            #expect(calls == 2 * display.reported)
            loop.checkInvariants()
        }
    }

    @Test("a source that no link wants has not stopped, and one whose frames never come has")
    func stopsWhileWanted() {
        withSimulation { simulation in
            let loop = simulation.loop
            let frames = FrameSource(interval: period)
            let log = changes(loop, frames)
            let link = DisplayLink(frames: frames) { _ in }
            link.isPaused = true
            link.add(to: loop, forMode: [.default, "drag"])
            loop.run(in: .default, until: ms(5000))
            link.isPaused = false
            loop.run(in: drag, until: ms(7000))
            #expect(log.entries == ["stopped 6000"])
            link.isPaused = true
            #expect(log.entries == ["stopped 6000", "on 7000"])
            link.isPaused = false
            link.isPaused = true
            loop.run(in: .default, until: ms(9000))
            #expect(log.entries.count == 2)
            loop.checkInvariants()
        }
    }

    @Test("a loop that was busy or in another mode looks for a frame before it reports that frames have stopped")
    func stopsLate() {
        withSimulation { simulation in
            let loop = simulation.loop
            let frames = FrameSource(interval: period)
            let log = changes(loop, frames)
            DisplayLink(frames: frames) { _ in }.add(to: loop, forMode: .default)
            loop.perform(at: ms(500)) { simulation.spend(.seconds(2)) }
            loop.perform(at: ms(2500)) { frames.frameBegan(at: loop.now) }
            loop.run(in: .default, until: ms(3000))
            #expect(log.entries == [])
            // The call would have been due at 3500.
            loop.addCommonMode(drag)
            loop.perform(at: ms(4000), inModes: RunLoop.Modes(drag)) {}
            loop.run(in: drag, until: ms(4000))
            loop.run(in: .default, until: ms(6000))
            #expect(log.entries == ["stopped 4016"])
        }
    }

    @Test("a handler of the end of frames may take its links out, and run its loop")
    func stopsAndRuns() {
        withSimulation { simulation in
            let loop = simulation.loop
            let frames = FrameSource(interval: period)
            let links = (0..<3).map { _ in DisplayLink(frames: frames) { _ in } }
            for link in links { link.add(to: loop, forMode: .default) }
            var words: [String] = []
            frames.stoppedHandler = { frames in
                words.append("\(frames.hasStopped) \(loop.now.word)")
                guard frames.hasStopped else { return }
                links[0].invalidate()
                loop.run(in: .default, until: loop.now + .seconds(2))
                links[1].invalidate()
                links[2].invalidate()
            }
            loop.run(in: .default, until: ms(10_000))
            #expect(words == ["true 1000", "false 3000"] && !frames.isWanted)
            loop.checkInvariants()
        }
    }

    @Test("links that take one another out, or make others, while a frame is reported")
    func changesWhileCalled() {
        withSimulation { simulation in
            let loop = simulation.loop
            let frames = FrameSource()
            var words: [String] = []
            var links: [DisplayLink] = []
            for number in 0..<3 {
                let link = DisplayLink(frames: frames) { link in
                    words.append("\(number)")
                    links.removeFirst().invalidate()
                    let other = DisplayLink(frames: frames) { _ in words.append("new") }
                    other.add(to: loop, forMode: .default)
                }
                links.append(link)
                link.add(to: loop, forMode: .default)
            }
            links.swapAt(0, 1)
            loop.perform { frames.frameBegan(at: ms(16)) }
            loop.run(in: .default, until: ms(1))
            // The first takes out the second, and the third the first. New links begin with the next frame.
            #expect(words == ["0", "2"])
            loop.perform(at: ms(32)) { frames.frameBegan(at: ms(32)) }
            loop.run(in: .default, until: ms(33))
            #expect(words == ["0", "2", "2", "new", "new"])
        }
    }

    @Test("the end of its loop takes a link out of its source")
    func endOfLoop() {
        let frames = FrameSource()
        withSimulation { simulation in
            DisplayLink(frames: frames) { _ in }.add(to: simulation.loop, forMode: .default)
            #expect(frames.isWanted)
        }
        #expect(!frames.isWanted)
        frames.frameBegan(at: ms(16))
    }
}
