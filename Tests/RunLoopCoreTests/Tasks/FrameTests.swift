import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@Suite("Frames of a loop's clock")
struct FrameTests {
    private static let frameClock = FrameClock(framesPerSecond: 50)

    /// Returns the frames that a task gets in `duration` of virtual time, as "timestamp+dropped>target@now" in
    /// milliseconds.
    private func frames(
        of frameClock: FrameClock = frameClock, rate: FrameRateRange = .default, inModes modes: RunLoop.Modes = .common,
        for duration: Duration = .milliseconds(100),
        _ body: nonisolated(nonsending) @escaping (RunLoop, Int) async throws -> Void = { _, _ in },
        meanwhile: (Simulation) -> Void = { _ in }
    ) -> [String] {
        withSimulation { simulation in
            let loop = simulation.loop
            var frames: [String] = []
            loop.task {
                let clock = loop.remote.clock(inModes: modes)
                for try await frame in clock.frames(of: frameClock, preferredFrameRateRange: rate) {
                    frames.append("\(Self.words(frame))@\(Self.milliseconds(loop.now))")
                    try await body(loop, frames.count)
                }
            }
            meanwhile(simulation)
            simulation.advance(to: RunLoop.Instant(nanoseconds: 0) + duration)
            return frames
        }
    }

    private static func words(_ frame: RunLoop.Frames.Element) -> String {
        "\(milliseconds(frame.timestamp))+\(frame.droppedFrames)>\(milliseconds(frame.targetTimestamp))"
    }

    private static func milliseconds(_ date: RunLoop.Instant) -> Int64 { date.nanoseconds / 1_000_000 }

    @Test("frames come when they begin, each with the date to draw for")
    func grid() {
        #expect(frames(for: .milliseconds(60)) == ["20+0>40@20", "40+0>60@40", "60+0>80@60"])
        let late = FrameClock(framesPerSecond: 50, start: RunLoop.Instant(nanoseconds: 5_000_000))
        #expect(frames(of: late, for: .milliseconds(30)) == ["5+0>25@5", "25+0>45@25"])
    }

    @Test("every n-th frame comes, with the n that suits the preferred rates")
    func rate() {
        let rate = FrameRateRange(minimum: 20, maximum: 30, preferred: 25)
        #expect(frames(rate: rate) == ["20+0>60@20", "60+0>100@60", "100+0>140@100"])
    }

    @Test(
        "a late task gets at once the newest frame, with the number of lost frames, and is back on the frames"
    )
    func late() {
        let every = frames { loop, count in
            if count == 1 { try await loop.clock.sleep(for: .milliseconds(50)) }
        }
        #expect(every == ["20+0>40@20", "60+1>80@70", "80+0>100@80", "100+0>120@100"])
        let second = frames(rate: FrameRateRange(minimum: 25, maximum: 25), for: .milliseconds(180)) { loop, count in
            if count == 1 { try await loop.clock.sleep(for: .milliseconds(110)) }
        }
        #expect(second == ["20+0>60@20", "100+1>140@130", "140+0>180@140", "180+0>220@180"])
    }

    @Test("frames rest while the loop runs in a mode that is not theirs, or is busy")
    func modes() {
        let frames = frames(
            inModes: .default, for: .milliseconds(200),
            meanwhile: { simulation in
                simulation.drag(
                    from: .init(nanoseconds: 30_000_000), until: .init(nanoseconds: 90_000_000))
                simulation.loop.perform(afterDelay: .milliseconds(110)) { simulation.spend(.milliseconds(60)) }
            })
        #expect(
            frames == [
                "20+0>40@20", "80+2>100@90", "100+0>120@100", "160+2>180@170", "180+0>200@180", "200+0>220@200",
            ])
    }

    @Test("a wait that is cancelled loses no frame, and the loop sleeps while no task waits")
    func cancelled() {
        withSimulation { simulation in
            let loop = simulation.loop
            var iterator = loop.clock.frames(of: Self.frameClock).makeAsyncIterator()
            let log = Log<String>()
            let task = loop.task {
                do { _ = try await iterator.next() } catch { log("\(error)@\(Self.milliseconds(loop.now))") }
                try await loop.task { log(Self.words(try await iterator.next()!)) }.value
            }
            loop.perform(afterDelay: .milliseconds(1)) { task.cancel() }
            #expect(simulation.runUntilIdle() == .done)
            #expect(log.text == "CancellationError()@1 20+0>40")
            #expect(Self.milliseconds(simulation.now) == 20)
        }
    }

    @Test("no frame is lost or delivered twice, wherever waits are cancelled and however late the task comes")
    func random() {
        let seed = UInt64.random(in: 0 ... .max)
        var random = SeededGenerator(seed: seed)
        withSimulation { simulation in
            let loop = simulation.loop
            let divisor = Int64.random(in: 1...4, using: &random)
            let rate = FrameRateRange(minimum: 0, maximum: 50 / Double(divisor))
            var iterator = loop.clock.frames(of: Self.frameClock, preferredFrameRateRange: rate).makeAsyncIterator()
            var (turns, cancelled) = (Int64(0), 0)
            loop.task {
                while turns < 1000 {
                    let wait = loop.task { try await iterator.next()! }
                    if Bool.random(using: &random) {
                        loop.perform(afterDelay: .milliseconds(Int.random(in: 0...60, using: &random))) {
                            wait.cancel()
                        }
                    }
                    do {
                        let frame = try await wait.value
                        let index = turns + Int64(frame.droppedFrames)
                        #expect(Self.milliseconds(frame.timestamp) == 20 + 20 * divisor * index, "seed \(seed)")
                        #expect(frame.timestamp <= loop.now && loop.now < frame.targetTimestamp, "seed \(seed)")
                        turns = index + 1
                    } catch {
                        #expect(error is CancellationError, "seed \(seed)")
                        cancelled += 1
                    }
                    if Int.random(in: 0..<4, using: &random) == 0 {
                        try await loop.clock.sleep(for: .milliseconds(Int.random(in: 0...200, using: &random)))
                    }
                }
            } then: { result in
                #expect(throws: Never.self) { try result.get() }
            }
            #expect(simulation.runUntilIdle() == .done, "seed \(seed)")
            #expect(turns >= 1000 && cancelled > 0, "seed \(seed)")
        }
    }

    @Test("a hundred tasks get the same frames in the order in which they began to wait")
    func many() {
        withSimulation { simulation in
            let loop = simulation.loop
            let log = Log<Int>()
            let frames = loop.clock.frames(of: Self.frameClock)
            for number in 0..<100 {
                loop.task {
                    var iterator = frames.makeAsyncIterator()
                    for _ in 0..<2 {
                        let frame = try await iterator.next()!
                        #expect(frame.droppedFrames == 0)
                        log.append(number)
                    }
                }
            }
            simulation.runUntilIdle()
            #expect(log.entries == Array(0..<100) + Array(0..<100))
        }
    }

    @Test("the end of the loop ends the wait")
    func ends() async {
        let log = Log<String>()
        let thread = LoopThread(name: "short") { loop in
            loop.task {
                for try await _ in loop.clock.frames() { loop.stop() }
            } then: {
                log("\($0)")
            }
        }
        await thread.ended()
        #expect(log.text == "failure(the run loop \"short\" has ended)")
        var iterator = thread.remote.clock().frames().makeAsyncIterator()
        // On a busy machine the first frame may be due already, and is not waited for.
        await #expect(throws: RunLoop.WaitError.loopEnded(loop: "short")) {
            while try await iterator.next() != nil {}
        }
    }
}
