// Foundation's RunLoop and Timer. Posts go through Dispatch's main queue; form perform: through `RunLoop.perform` and
// CFRunLoopWakeUp, as `perform` does not wake the loop.
import CoreFoundation
import Dispatch
import Foundation
import Harness

nonisolated(unsafe) private let loop = RunLoop.main
nonisolated(unsafe) private var isStopped = false
private let modes = [RunLoop.Mode("first"), RunLoop.Mode("second")]

nonisolated(unsafe) private let coreLoop = CFRunLoopGetMain()

private func date(after delay: UInt64) -> Date { Date(timeIntervalSinceNow: Double(delay) * 1e-9) }

private func timer(_ handle: UnsafeMutableRawPointer?) -> Timer {
    Unmanaged.fromOpaque(handle!).takeUnretainedValue()
}

private func addTimer(
    after delay: UInt64, repeats: Bool, in mode: RunLoop.Mode, _ block: @escaping @Sendable (Timer) -> Void
) -> UnsafeMutableRawPointer {
    let interval = repeats ? Double(delay) * 1e-9 : 0
    let timer = Timer(fire: date(after: delay), interval: interval, repeats: repeats, block: block)
    loop.add(timer, forMode: mode)
    // The loop keeps the timer until it is invalidated.
    return Unmanaged.passUnretained(timer).toOpaque()
}

var peer = Peer()
peer.skips_missed = true
peer.run = {
    isStopped = false
    while !isStopped { _ = loop.run(mode: .default, before: .distantFuture) }
}
peer.stop = {
    isStopped = true
    CFRunLoopStop(coreLoop)
}
peer.pass = { _ = loop.run(mode: .default, before: .distantPast) }
peer.add = { delay, number in addTimer(after: delay, repeats: false, in: .default) { _ in harness_fired(number) } }
peer.cancel = { timer($0).invalidate() }
peer.rearm = { handle, delay, _ in timer(handle).fireDate = date(after: delay) }
peer.add_repeating = { period, number in
    addTimer(after: period, repeats: true, in: .default) { _ in harness_fired(number) }
}
// Keeps a run without timers from ending.
peer.post_prepare = { _ = addTimer(after: 3_600_000_000_000, repeats: false, in: .default) { _ in } }
peer.post = { task, argument in
    nonisolated(unsafe) let argument = argument
    DispatchQueue.main.async { task!(argument) }
}
// Foundation has no descriptor sources on Linux; CFSocket has, on a thread of its own that calls select.
peer.watch = { descriptor, number in
    var context = CFSocketContext()
    context.info = UnsafeMutableRawPointer(bitPattern: number + 1)
    let socket = CFSocketCreateWithNative(
        nil, descriptor, 1,
        { socket, _, _, _, info in harness_readable(CFSocketGetNative(socket), Int(bitPattern: info) - 1) }, &context)
    CFRunLoopAddSource(coreLoop, CFSocketCreateRunLoopSource(nil, socket, 0), kCFRunLoopDefaultMode)
}
peer.add_in_mode = { delay, mode in addTimer(after: delay, repeats: false, in: modes[Int(mode)]) { _ in } }
peer.pass_in_mode = { _ = loop.run(mode: modes[Int($0)], before: .distantPast) }
peer.make_common = {
    for name in ["first", "second"] {
        CFRunLoopAddCommonMode(coreLoop, CFStringCreateWithCString(nil, name, CFStringBuiltInEncodings.UTF8.rawValue))
    }
}
peer.add_common = { delay, number in addTimer(after: delay, repeats: false, in: .common) { _ in harness_fired(number) }
}
// Foundation cannot take a timer out of a mode.
peer.remove_common = { timer($0).invalidate() }
peer.tasks = { taskWorkloads.start($0, $1, $2) }
peer.start = { _, _ in }
if CommandLine.arguments.dropFirst().first == "perform" {
    peer.post = { task, argument in
        nonisolated(unsafe) let argument = argument
        loop.perform { task!(argument) }
        CFRunLoopWakeUp(coreLoop)
    }
}

exit(harness_main(CommandLine.argc, CommandLine.unsafeArgv, &peer))
