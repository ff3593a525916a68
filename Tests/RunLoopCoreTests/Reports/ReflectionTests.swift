import RunLoopCore
import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

/// A handle that counts the mirrors made of it.
private final class Reflected: CustomReflectable {
    let mirrors = Counter()
    var isOn: Bool { false }
    var customMirror: Mirror {
        mirrors.add()
        return Mirror(self, children: [:])
    }
}

private struct Unique: ~Copyable {}

private final class Holder<Value: ~Copyable> {
    let value: Value

    init(_ value: consuming Value) {
        self.value = value
    }
}

@Suite("Values that a failed expectation inspects")
struct ReflectionTests {
    // While one of the next two holds with the oldest version of Swift that the package supports, handles are `Opaque`.
    // Both hold with Swift 6.3.1.
    @Test("a mirror traps at a generic property whose value cannot be copied")
    func trap() async {
        await #expect(processExitsWith: .failure) { reflect(Holder(Unique())) }
        await #expect(processExitsWith: .success) { reflect(Holder(5)) }
    }

    @Test("a failed expectation makes mirrors of its operands")
    func mirrors() {
        let handle = Reflected()
        withKnownIssue { #expect(handle.isOn) }
        #expect(handle.mirrors.value > 0)
    }

    @Test("a mirror shows nothing inside a loop, or inside the items scheduled in it")
    func loops() {
        withSimulation { simulation in
            let loop = simulation.loop
            let timer = Timer(timeInterval: .seconds(1), repeats: true) { _ in }
            loop.add(timer, forMode: .common)
            let queue = DeliveryQueue.main
            let thread = LoopThread(name: "thread") { $0.add(CustomSource(), forMode: .default) }
            let descriptors = DescriptorPair()
            let handles: [Any] = [
                loop, loop.remote, timer, timer.remote, CustomSource(), loop.randomNumbers, thread, thread.remote,
                Observer(activities: .entry) { _, _ in }, DisplayLink { _ in }, WallTimer(at: loop.wallTime) { _ in },
                DescriptorSource(fileDescriptor: descriptors.reader, events: .readable) { _, _ in },
                StallMonitor(loop, threshold: .seconds(1)) { _ in }, LoopBound(timer, loop: loop),
                RunLoop.Local { _ in 1 }, loop.remote.executor(), loop.activities(of: .entry),
                queue.asyncAfter(.seconds(1)) {}, TimerSource(queue: queue), TimerRegistry(), LoopThreadPool(),
                Countdown(loop: loop, pausing: .restarting) { _ in },
            ]
            for handle in handles {
                #expect(isOpaque(handle), "\(type(of: handle))")
                reflect(handle)
            }
        }
    }

    @Test("values of a loop can be looked into while it runs and after it has ended")
    func values() {
        var values: [Any] = []
        withSimulation { simulation in
            let loop = simulation.loop
            values = [
                loop.clock, loop.clock.ticks(every: .seconds(1)), loop.clock.frames(), loop.dump(), loop.statistics,
                loop.perform(afterDelay: .seconds(1)) {}, loop.now, loop.wallTime, DeliveryQueue.main,
                loop.clock.ticks(every: .seconds(1)).makeAsyncIterator(), loop.clock.frames().makeAsyncIterator(),
                loop.activities(of: .entry).makeAsyncIterator(), RunLoop.Mode.default, RunLoop.Modes.common,
                FrameRateMeter(), Histogram(), RateLimit(interval: .seconds(1), burst: 5), RunLoop.Origin(),
            ]
            for value in values { reflect(value) }
        }
        for value in values { reflect(value) }
    }
}
