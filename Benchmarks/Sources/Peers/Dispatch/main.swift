// Dispatch: a serial queue is the loop. Forms: after (`asyncAfter` and `DispatchWorkItem` instead of timer sources),
// tolerance (a leeway of a millisecond).
import Dispatch
import Glibc
import Harness

private let queue = DispatchQueue(label: "loop")
private let stopped = DispatchSemaphore(value: 0)
nonisolated(unsafe) private var leeway = DispatchTimeInterval.nanoseconds(0)

private func source(_ handle: UnsafeMutableRawPointer?) -> any DispatchSourceTimer {
    Unmanaged<AnyObject>.fromOpaque(handle!).takeUnretainedValue() as! any DispatchSourceTimer
}

private func timerSource(
    after delay: UInt64, repeats: Bool, _ block: @escaping @convention(block) () -> Void
) -> UnsafeMutableRawPointer {
    let source = DispatchSource.makeTimerSource(queue: queue)
    let interval = DispatchTimeInterval.nanoseconds(Int(delay))
    source.schedule(deadline: .now() + interval, repeating: repeats ? interval : .never, leeway: leeway)
    source.setEventHandler(handler: block)
    source.activate()
    return Unmanaged.passRetained(source as AnyObject).toOpaque()
}

private func watch(_ descriptor: Int32, _ number: Int) {
    let source = DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: queue)
    source.setEventHandler { harness_readable(descriptor, number) }
    source.activate()
    _ = Unmanaged.passRetained(source as AnyObject)
}

private func workItem(after delay: UInt64, _ number: Int) -> UnsafeMutableRawPointer {
    let item = DispatchWorkItem { harness_fired(number) }
    queue.asyncAfter(deadline: .now() + .nanoseconds(Int(delay)), execute: item)
    return Unmanaged.passRetained(item).toOpaque()
}

// Functions make the queue's closures: a closure at top level would belong to the main thread.
var peer = Peer()
peer.skips_missed = true
// The queue's thread is made here, and inherits the processor of this one.
peer.start = { _, _ in queue.sync {} }
peer.run = { stopped.wait() }
peer.stop = { stopped.signal() }
peer.flush_cancels = { queue.sync {} }
peer.add = { delay, number in timerSource(after: delay, repeats: false) { harness_fired(number) } }
peer.cancel = { handle in
    source(handle).cancel()
    Unmanaged<AnyObject>.fromOpaque(handle!).release()
}
peer.rearm = { handle, delay, _ in
    source(handle).schedule(deadline: .now() + .nanoseconds(Int(delay)), repeating: .never, leeway: leeway)
}
peer.add_repeating = { period, number in timerSource(after: period, repeats: true) { harness_fired(number) } }
peer.post = { task, argument in
    nonisolated(unsafe) let argument = argument
    queue.async { task!(argument) }
}
peer.watch = { watch($0, $1) }
peer.tasks = { taskWorkloads.start($0, $1, $2) }

switch CommandLine.arguments.dropFirst().first {
case "tolerance": leeway = .milliseconds(1)
case "after":
    peer = Peer()
    peer.start = { _, _ in queue.sync {} }
    peer.run = { stopped.wait() }
    peer.stop = { stopped.signal() }
    peer.add = { workItem(after: $0, $1) }
    peer.cancel = { Unmanaged<DispatchWorkItem>.fromOpaque($0!).takeRetainedValue().cancel() }
    peer.flush_cancels = { queue.sync {} }
default: break
}

exit(harness_main(CommandLine.argc, CommandLine.unsafeArgv, &peer))
