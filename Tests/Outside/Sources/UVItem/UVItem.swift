package import CLibuv
package import RunLoopKit

/// A loop of libuv that a run loop serves in chosen modes. The run loop sleeps for both; in other modes, libuv rests.
///
/// The run loop keeps it until it is invalidated or the run loop ends. Like both loops, it belongs to one thread.
/// A handle's callback may run the run loop; meanwhile libuv, which cannot be run in its own callbacks, rests.
///
/// libuv reads its own clock. Its timers are on virtual time only in a simulation that answers calls for the time, as
/// `captureExecutors()` of RunLoopTesting has it do. In any other simulation, virtual time passes them by, while
/// libuv's descriptors are served.
package final class UVItem {
    package let modes: RunLoop.Modes
    private let loop: RunLoop
    private let uv: UnsafeMutablePointer<uv_loop_t>
    /// The source for libuv's own descriptor, which is readable when one of its handles is ready.
    private var source: DescriptorSource?
    private var observer: Observer?
    /// The call at libuv's next date, which is in milliseconds of its own clock.
    private var call: DelayedCall?
    private var date: UInt64?
    private var isPosted = false
    private var isRunning = false

    /// Adds a loop of libuv to a run loop.
    package init(
        _ uv: UnsafeMutablePointer<uv_loop_t>, on loop: RunLoop, inModes modes: RunLoop.Modes = .common
    ) throws {
        (self.uv, self.loop, self.modes) = (uv, loop, modes)
        let source = DescriptorSource(fileDescriptor: uv_backend_fd(uv), events: .readable) { [self] _, _ in run() }
        // Before each look at the descriptors, and once more if the loop is going to sleep: handlers may have started
        // handles meanwhile.
        let observer = Observer(activities: [.beforeSources, .beforeWaiting], order: .max) { [self] _, _ in prepare() }
        (source.name, observer.name) = ("libuv", "libuv")
        (self.source, self.observer) = (source, observer)
        source.invalidationHandler = { [self] in invalidate() }
        try loop.add(source, forMode: modes)
        loop.add(observer, forMode: modes)
    }

    /// Removes libuv's loop from its run loop. Harmless when repeated.
    package func invalidate() {
        let items = (source, observer)
        (source, observer) = (nil, nil)
        setDate(nil)
        items.0?.invalidate()
        items.1?.invalidate()
    }

    /// Asks libuv for its next date, and whether its descriptor is to be watched.
    private func prepare() {
        guard !isRunning else { return }
        // Without a handle, libuv would neither look at its descriptor nor sleep.
        let isAlive = uv_loop_alive(uv) != 0
        source?.events = isAlive ? .readable : []
        guard isAlive else { return setDate(nil) }
        uv_update_time(uv)
        let timeout = uv_backend_timeout(uv)
        setDate(timeout > 0 ? uv_now(uv) + UInt64(timeout) : nil)
        if timeout == 0 { post() }
    }

    private func setDate(_ new: UInt64?) {
        guard new != date else { return }
        call?.cancel()
        (date, call) = (new, nil)
        guard let new else { return }
        let delay = Duration.milliseconds(Int64(new - uv_now(uv)))
        call = loop.perform(afterDelay: delay, inModes: modes) { [self] in
            (date, call) = (nil, nil)
            run()
        }
    }

    /// Posts a call, for handles that wait for nothing or have to be given to the descriptor.
    private func post() {
        guard !isPosted else { return }
        isPosted = true
        loop.perform(inModes: modes) { [self] in
            isPosted = false
            run()
        }
    }

    private func run() {
        // A callback runs the run loop. The descriptor stays readable, so it is watched again afterwards.
        guard !isRunning, source != nil else {
            source?.events = []
            return
        }
        isRunning = true
        uv_run(uv, UV_RUN_NOWAIT)
        isRunning = false
    }
}
