import CWayland
import Glibc
import RunLoopKit

/// The connection to a compositor, on a run loop: the loop sleeps for both, and events of the compositor are dispatched in
/// the loop's passes, in all modes.
final class Display {
    let display: OpaquePointer
    private let loop: RunLoop
    private var globals: [String: OpaquePointer] = [:]
    private var isPosted = false

    init(on loop: RunLoop) throws {
        guard let display = wl_display_connect(nil) else { fail("there is no compositor") }
        (self.display, self.loop) = (display, loop)
        let registry = wl_display_get_registry(display)
        wl_registry_add_listener(registry, registryListener, Unmanaged.passUnretained(self).toOpaque())
        // The compositor announces its globals before it answers the round trip.
        wl_display_roundtrip(display)
        try loop.setPollFunction { [unowned self] in poll($0, $1) }
    }

    /// A global of the compositor that the function `bind_global` knows.
    func global(_ interface: String) -> OpaquePointer {
        guard let global = globals[interface] else { fail("the compositor has no \(interface)") }
        return global
    }

    private let registryListener = kept(
        wl_registry_listener(
            global: { context, registry, name, interface, _ in
                guard let bound = bind_global(registry, name, interface) else { return }
                let this = Unmanaged<Display>.fromOpaque(context!).takeUnretainedValue()
                this.globals[String(cString: interface!)] = OpaquePointer(bound)
            },
            global_remove: { _, _, _ in }))

    /// Waits in the loop's place, as the documentation of `wl_display_prepare_read_queue` demands.
    private func poll(_ loopDescriptor: Int32, _ mayWait: Bool) -> RunLoop.PollResult {
        // Not if there are events that were read and not dispatched, because then nothing must be waited for.
        let isPrepared = wl_display_prepare_read(display) == 0
        // Requests that do not fit into the socket are sent when it is writable again.
        let isFull = wl_display_flush(display) < 0 && errno == EAGAIN
        var ready = [
            pollfd(fd: wl_display_get_fd(display), events: Int16(isFull ? POLLIN | POLLOUT : POLLIN), revents: 0),
            pollfd(fd: loopDescriptor, events: Int16(POLLIN), revents: 0),
        ]
        Glibc.poll(&ready, 2, mayWait && isPrepared ? -1 : 0)
        // Readable, or at its end.
        let isReadable = ready[0].revents & ~Int16(POLLOUT) != 0
        if isPrepared {
            if !isReadable {
                wl_display_cancel_read(display)
            } else if wl_display_read_events(display) < 0 {
                fail("the compositor is gone (errno \(errno))")
            }
        }
        if isReadable || !isPrepared { postDispatch() }
        return ready[1].revents != 0 ? .ready : .notReady
    }

    /// Makes the pass dispatch events. Not here, because a listener may run the loop, in the tracking mode for example.
    /// That run posts blocks of its own, and libwayland allows it to dispatch within a listener.
    private func postDispatch() {
        guard !isPosted else { return }
        isPosted = true
        loop.perform(inModes: .every) { [unowned self] in
            isPosted = false
            if wl_display_dispatch_pending(display) < 0 { fail("the compositor reports an error (errno \(errno))") }
        }
    }
}

/// Returns a listener at an address that stays valid forever, where libwayland looks for it.
func kept<Listener>(_ listener: Listener) -> UnsafePointer<Listener> {
    let pointer = UnsafeMutablePointer<Listener>.allocate(capacity: 1)
    pointer.initialize(to: listener)
    return UnsafePointer(pointer)
}

func fail(_ reason: String) -> Never {
    print("FAILED: \(reason)")
    exit(1)
}
