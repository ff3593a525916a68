import Glibc
// RunLoopKit, through its public API: a `Timer` with a closure each, kept by the loop, with the usual driver. Forms:
// tolerance (repeating timers may come a millisecond late); delayed call (instead of a timer that fires once; by the
// time of the pass, as in loops of C); sleep of a task (by a task of the loop, including its creation).
import Harness
import RunLoopKit
import RunLoopSimulation

nonisolated(unsafe) private let loop = RunLoop.current
nonisolated(unsafe) private var tolerance = Duration.zero
nonisolated(unsafe) private var isStopped = false
private let modes: [RunLoop.Mode] = ["first", "second"]
/// The descriptor sources, which belong to their creator.
nonisolated(unsafe) private var descriptorSources: [DescriptorSource] = []

private func handle(_ timer: Timer) -> UnsafeMutableRawPointer { Unmanaged.passUnretained(timer).toOpaque() }
// A user has the timer in a constant, and counts no reference; here the loop keeps it.
private func with<Result>(_ handle: UnsafeMutableRawPointer?, _ body: (Timer) -> Result) -> Result {
    Unmanaged<Timer>.fromOpaque(handle!)._withUnsafeGuaranteedRef(body)
}

private func watch(_ descriptor: Int32, _ number: Int, in mode: RunLoop.Mode) {
    let source = DescriptorSource(fileDescriptor: descriptor, events: .readable) { _, _ in
        harness_readable(descriptor, number)
    }
    do { try loop.add(source, forMode: RunLoop.Modes(mode)) } catch { fatalError("\(error)") }
    descriptorSources.append(source)
}

var peer = Peer()
peer.skips_missed = true
peer.start = { form, threads in
    if String(cString: form!) == "tolerance" { tolerance = .milliseconds(1) }
    // Keeps a run without timers from ending.
    if threads { loop.add(CustomSource(), forMode: .default) }
}
peer.run = {
    isStopped = false
    while !isStopped { loop.run(in: .default) }
}
peer.stop = {
    isStopped = true
    loop.stop()
}
peer.pass = { loop.run(in: .default, until: .distantPast) }
peer.report = {
    harness_emit("waits", Double(loop.statistics.waits), "")
    harness_emit("saved_wakeups", Double(loop.statistics.savedWakeUps), "")
    harness_emit("passes", Double(loop.statistics.passes), "")
    harness_emit("jobs", Double(loop.statistics.jobs), "")
}

/// Adds a timer that is due at once. As in Foundation, an interval of zero would be 0.1 ms, and the loop would sleep.
private func addAtOnce(_ number: Int) -> UnsafeMutableRawPointer {
    let timer = Timer(at: loop.now) { _ in harness_fired(number) }
    loop.add(timer, forMode: .default)
    return handle(timer)
}

// Timers. The loop keeps each until it is invalidated.
peer.add = { delay, number in
    guard delay > 0 else { return addAtOnce(number) }
    let interval = Duration.nanoseconds(Int64(delay))
    return handle(Timer.scheduledTimer(withTimeInterval: interval, repeats: false) { _ in harness_fired(number) })
}
peer.cancel = { with($0) { $0.invalidate() } }
peer.rearm = { handle, delay, _ in
    with(handle) { $0.fireDate = loop.passTime + .nanoseconds(Int64(delay)) }
}
peer.add_repeating = { period, number in
    let timer = Timer(timeInterval: .nanoseconds(Int64(period)), repeats: true) { _ in harness_fired(number) }
    timer.tolerance = tolerance
    RunLoop.current.add(timer, forMode: .default)
    return handle(timer)
}

// Delayed calls. A token has 16 bytes and a handle 8: the part common to all tokens of the loop is kept once.
private let anyCall = unsafeBitCast(loop.perform(at: .distantFuture, inModes: []) {}, to: (UInt64, UInt64).self)
private func call(_ handle: UnsafeMutableRawPointer?) -> DelayedCall {
    unsafeBitCast((anyCall.0, UInt64(UInt(bitPattern: handle))), to: DelayedCall.self)
}
private func date(_ delay: UInt64) -> RunLoop.Instant {
    RunLoop.Instant(nanoseconds: loop.passTime.nanoseconds + Int64(delay))
}
if CommandLine.arguments.dropFirst().first == "delayed call" {
    peer.caches_time = true
    peer.sync_time = { loop.run(in: .default, until: .distantPast) }
    peer.add = { delay, number in
        let call = loop.perform(at: date(delay)) { harness_fired(number) }
        return UnsafeMutableRawPointer(bitPattern: UInt(unsafeBitCast(call, to: (UInt64, UInt64).self).1))
    }
    peer.cancel = { call($0).cancel() }
    peer.rearm = { handle, delay, _ in call(handle).rearm(at: date(delay)) }
}

// Timeouts, in objects that the caller has anyway; also by the time of the pass.
private final class Embedded: Timeout {
    override func timeoutExpired() {}
}
private func withEmbedded(_ handle: UnsafeMutableRawPointer?, _ body: (Embedded) -> Void) {
    Unmanaged<Embedded>.fromOpaque(handle!)._withUnsafeGuaranteedRef(body)
}
peer.embed_prepare = { handles, count in
    for index in 0..<count { handles![index] = Unmanaged.passRetained(Embedded()).toOpaque() }
    loop.run(in: .default, until: .distantPast)
}
peer.embed_add = { handle, delay in withEmbedded(handle) { loop.add($0, at: date(delay)) } }
peer.embed_cancel = { withEmbedded($0) { $0.cancel() } }

// Sleeps of tasks.
nonisolated(unsafe) private var tasks: [_Concurrency.Task<Void, any Error>?] = []
nonisolated(unsafe) private var sleepers = (begun: 0, ended: 0)
private let clock = loop.clock
if CommandLine.arguments.dropFirst().first == "sleep of a task" {
    peer.add = { delay, number in
        while tasks.count <= number { tasks.append(nil) }
        let date = loop.now + .nanoseconds(Int64(delay))
        tasks[number] = loop.task {
            sleepers.begun += 1
            defer { sleepers.ended += 1 }
            try await clock.sleep(until: date)
            harness_fired(number)
        }
        return UnsafeMutableRawPointer(bitPattern: number + 1)
    }
    // The tasks begin to sleep, and see their cancellation, in passes of the loop.
    peer.flush_adds = {
        let count = sleepers.ended + tasks.count
        while sleepers.begun < count { loop.run(in: .default, until: .distantPast) }
    }
    peer.cancel = { handle in
        let number = Int(bitPattern: handle) - 1
        tasks[number]!.cancel()
        tasks[number] = nil
    }
    peer.flush_cancels = {
        while sleepers.ended < sleepers.begun { loop.run(in: .default, until: .distantPast) }
    }
    peer.rearm = nil
}

// Posts.
peer.post = { task, argument in
    nonisolated(unsafe) let argument = argument
    loop.remote.perform { _ in task!(argument) }
}

// Descriptors and modes.
peer.watch = { watch($0, $1, in: .default) }
peer.watch_in_mode = { watch($0, $1, in: modes[Int($2)]) }
peer.add_in_mode = { delay, mode in
    let timer = Timer(timeInterval: .nanoseconds(Int64(delay)), repeats: false) { _ in }
    loop.add(timer, forMode: RunLoop.Modes(modes[Int(mode)]))
    return handle(timer)
}
peer.pass_in_mode = { loop.run(in: modes[Int($0)], until: .distantPast) }
peer.make_common = { for mode in modes { loop.addCommonMode(mode) } }
peer.add_common = { delay, number in
    let timer = Timer(timeInterval: .nanoseconds(Int64(delay)), repeats: false) { _ in harness_fired(number) }
    loop.add(timer, forMode: .common)
    return handle(timer)
}
peer.remove_common = { with($0) { loop.remove($0, forMode: .common) } }

// Virtual time.
peer.virtual_run = { duration, arm in
    withSimulation { simulation in
        arm!(nil)
        simulation.advance(by: .nanoseconds(Int64(duration)))
    }
}

// Tasks.
peer.tasks = { taskWorkloads.start($0, $1, $2) }

exit(harness_main(CommandLine.argc, CommandLine.unsafeArgv, &peer))
