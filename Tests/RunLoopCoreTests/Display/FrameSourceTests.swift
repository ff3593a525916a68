import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@testable import RunLoopCore

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

@Suite("Frames that somebody else begins")
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

    @Test("in a mode that is not its own the link loses the frames, and one in the common modes loses none")
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

    @Test("30 of 60: a link at half the rate is called in every other frame, also after frames that nobody reported")
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
                    frames.frameBegan(at: RunLoop.Instant(nanoseconds: Int64(frame) * 16_666_667))
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
            loop.perform {
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
            loop.run(in: .default, until: ms(1))
        }
    }

    @Test("a source is wanted while a link that is not paused is in a loop")
    func wanted() {
        withSimulation { simulation in
            let loop = simulation.loop
            let frames = FrameSource()
            var changes: [Bool] = []
            frames.wantedHandler = { changes.append($0) }
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
            loop.perform { frames.frameBegan(at: ms(32)) }
            loop.run(in: .default, until: ms(2))
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
