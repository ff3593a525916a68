import CEpoll
import CGLibUnix
import CLibuv
import Glibc
import RunLoopGLib
import RunLoopKit

/// A host's own means for the work of a guest.
protocol Worker: AnyObject {
    init()

    /// Waits, and serves ready items.
    func turn()
    /// Calls `handler` whenever the descriptor is readable.
    func watch(_ descriptor: Int32, _ handler: @escaping () -> Void)
    /// Calls `handler` every millisecond.
    func tick(_ handler: @escaping () -> Void)
    /// Adds a guest.
    func add(_ guest: RunLoop.Guest) throws
}

final class EpollWorker: Worker {
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
            // One shot each, as in a loop with many timers.
            timerfd_settime(timer, 0, &setting, nil)
            handler()
        }
    }

    func add(_ guest: RunLoop.Guest) throws {
        self.guest = guest
        watch(try guest.fileDescriptor) { guest.run() }
    }
}

/// A handler, at an address that C keeps.
private final class Handler {
    let handler: () -> Void

    init(_ handler: @escaping () -> Void) {
        self.handler = handler
    }
}

private func keep(_ handler: @escaping () -> Void) -> UnsafeMutableRawPointer {
    Unmanaged.passRetained(Handler(handler)).toOpaque()
}

private func call(_ context: UnsafeMutableRawPointer?) {
    Unmanaged<Handler>.fromOpaque(context!).takeUnretainedValue().handler()
}

final class LibuvWorker: Worker {
    private let loop = uv_default_loop()
    private var host: LibuvHost?

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

    func add(_ guest: RunLoop.Guest) throws { host = try LibuvHost(guest) }
}

class GLibWorker: Worker {
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

    func add(_ guest: RunLoop.Guest) throws { host = try GLibHost(guest) }
}

/// GLib's sources, with the main context as an item of a run loop.
final class RunLoopWorker: GLibWorker {
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
