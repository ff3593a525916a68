// The processor time of a host's event, when the host does the work itself and when a guest does.
import CEpoll
import CGLibUnix
import CLibuv
import Glibc
import RunLoopGLib
import RunLoopKit

/// A host's own means for the work of a guest.
protocol Worker: AnyObject {
    static var name: String { get }
    init()

    /// Waits, and serves what is ready.
    func turn()
    /// Calls `handler` whenever the descriptor is readable.
    func watch(_ descriptor: Int32, _ handler: @escaping () -> Void)
    /// Calls `handler` every millisecond.
    func tick(_ handler: @escaping () -> Void)
    /// Takes a guest in.
    func add(_ guest: RunLoop.Guest)
}

final class EpollWorker: Worker {
    static let name = "epoll and a timer descriptor"
    private let epoll = epoll_create1(0)
    private var handlers: [Int32: () -> Void] = [:]
    private var guest: RunLoop.Guest?

    func turn() {
        guest?.prepare()
        var event = epoll_event()
        if epoll_wait(epoll, &event, 1, -1) == 1 { handlers[event.data.fd]!() }
    }

    func watch(_ descriptor: Int32, _ handler: @escaping () -> Void) {
        var event = epoll_event()
        event.events = EPOLLIN.rawValue
        event.data.fd = descriptor
        epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event)
        handlers[descriptor] = handler
    }

    func tick(_ handler: @escaping () -> Void) {
        let timer = timerfd_create(CLOCK_MONOTONIC, 0)
        var setting = itimerspec()
        setting.it_value.tv_nsec = 1_000_000
        timerfd_settime(timer, 0, &setting, nil)
        watch(timer) {
            // One shot each, as a loop with many timers does it.
            timerfd_settime(timer, 0, &setting, nil)
            handler()
        }
    }

    func add(_ guest: RunLoop.Guest) {
        self.guest = guest
        watch(try! guest.descriptor) { guest.run() }
    }
}

private func keep(_ handler: @escaping () -> Void) -> UnsafeMutableRawPointer {
    Unmanaged.passRetained(Box(handler)).toOpaque()
}

private func call(_ context: UnsafeMutableRawPointer?) {
    Unmanaged<Box<() -> Void>>.fromOpaque(context!).takeUnretainedValue().value()
}

final class LibuvWorker: Worker {
    static let name = "libuv"
    private let loop = UnsafeMutablePointer<uv_loop_t>.allocate(capacity: 1)

    init() {
        uv_loop_init(loop)
    }

    func turn() { uv_run(loop, UV_RUN_ONCE) }

    func watch(_ descriptor: Int32, _ handler: @escaping () -> Void) {
        let poll = UnsafeMutablePointer<uv_poll_t>.allocate(capacity: 1)
        uv_poll_init(loop, poll, descriptor)
        poll.pointee.data = keep(handler)
        uv_poll_start(poll, Int32(UV_READABLE.rawValue)) { poll, _, _ in call(poll!.pointee.data) }
    }

    func tick(_ handler: @escaping () -> Void) {
        let timer = UnsafeMutablePointer<uv_timer_t>.allocate(capacity: 1)
        uv_timer_init(loop, timer)
        timer.pointee.data = keep(handler)
        uv_timer_start(timer, { call($0!.pointee.data) }, 1, 1)
    }

    func add(_ guest: RunLoop.Guest) {
        watch(try! guest.descriptor) { guest.run() }
        let before = UnsafeMutablePointer<uv_prepare_t>.allocate(capacity: 1)
        uv_prepare_init(loop, before)
        before.pointee.data = keep { guest.prepare() }
        uv_prepare_start(before) { call($0!.pointee.data) }
    }
}

class GLibWorker: Worker {
    class var name: String { "GLib" }
    private var host: GLibHost?

    required init() {}

    func turn() { g_main_context_iteration(nil, 1) }

    func watch(_ descriptor: Int32, _ handler: @escaping () -> Void) {
        g_unix_fd_add(
            descriptor, G_IO_IN,
            { _, _, context in
                call(context)
                return 1
            }, keep(handler))
    }

    func tick(_ handler: @escaping () -> Void) {
        g_timeout_add(
            1,
            { context in
                call(context)
                return 1
            }, keep(handler))
    }

    func add(_ guest: RunLoop.Guest) {
        host = try! GLibHost(guest)
    }
}

/// GLib's sources, with the main context as an item of a run loop.
final class RunLoopWorker: GLibWorker {
    override class var name: String { "GLib in a run loop" }
    private let loop = RunLoop.current
    private let context = try! GLibContext(on: .current)
    private var calls = 0

    override func turn() { loop.run(in: .default) }

    override func watch(_ descriptor: Int32, _ handler: @escaping () -> Void) {
        super.watch(descriptor) { self.serve(handler) }
    }

    override func tick(_ handler: @escaping () -> Void) {
        super.tick { self.serve(handler) }
    }

    private func serve(_ handler: () -> Void) {
        handler()
        calls += 1
        if calls % 100 == 0 { loop.stop() }
    }
}

private func processorTime() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return Double(time.tv_sec) * 1e9 + Double(time.tv_nsec)
}

/// A pipe with a byte that nobody reads.
private func readyPipe() -> Int32 {
    var ends: [Int32] = [-1, -1]
    precondition(pipe(&ends) == 0 && write(ends[1], "x", 1) == 1, "no pipe")
    return ends[0]
}

/// One end of a pair of sockets, and what takes its byte and sends it again.
private func echo() -> (descriptor: Int32, again: () -> Void) {
    var ends: [Int32] = [-1, -1]
    precondition(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0, "no sockets")
    let (here, there) = (ends[0], ends[1])
    _ = write(there, "x", 1)
    return (
        here,
        {
            var byte: UInt8 = 0
            _ = read(here, &byte, 1)
            _ = write(there, &byte, 1)
        }
    )
}

/// The nanoseconds of an event, the least of several measurements.
private func measure(_ worker: any Worker, _ events: Int, _ count: Box<Int>) -> Double {
    var least = Double.infinity
    for _ in 0..<7 {
        let (begin, end) = (count.value, count.value + events)
        let start = processorTime()
        while count.value < end { worker.turn() }
        least = min(least, (processorTime() - start) / Double(count.value - begin))
    }
    return least
}

/// One measurement, in a process of its own.
func printCost(of kind: any Worker.Type, _ work: String, inGuest: Bool) {
    let (worker, count, loop) = (kind.init(), Box(0), RunLoop.current)
    let add = { count.value += 1 }
    var events = 20_000
    switch (work, inGuest) {
    case ("fire", false): worker.tick(add)
    case ("fire", true):
        loop.add(Timer(timeInterval: .milliseconds(1), repeats: true) { _ in add() }, forMode: .default)
    case ("descriptor", true):
        let source = DescriptorSource(fileDescriptor: readyPipe(), events: .readable) { _, _ in add() }
        do { try loop.add(source, forMode: .default) } catch { fatalError("\(error)") }
    case ("echo", _):
        let (descriptor, again) = echo()
        let both = {
            again()
            add()
        }
        guard inGuest else {
            worker.watch(descriptor, both)
            break
        }
        let source = DescriptorSource(fileDescriptor: descriptor, events: .readable) { _, _ in both() }
        do { try loop.add(source, forMode: .default) } catch { fatalError("\(error)") }
    default: worker.watch(readyPipe(), add)
    }
    if work == "fire" { events = 300 }
    if work == "idle" { loop.perform(afterDelay: .seconds(3600)) {} }
    if inGuest { worker.add(loop.makeGuest()) }
    print(measure(worker, events, count))
}
