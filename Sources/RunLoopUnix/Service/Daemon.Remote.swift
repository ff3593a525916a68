internal import RunLoopKit

extension Daemon {
    /// A handle with which other threads control a daemon. Each request wakes the loop, which carries it out on its own
    /// thread, in the common modes and the daemon's own. Once the daemon has gone, requests do nothing. Any thread.
    public final class Remote: Sendable {
        private let loop: RunLoop.Remote
        private let modes: RunLoop.Modes
        // Set once, here, and read only on the thread of the daemon's loop, when the loop delivers the request.
        private nonisolated(unsafe) weak let daemon: Daemon?

        init(_ daemon: Daemon) {
            self.daemon = daemon
            loop = daemon.loop.remote
            modes = daemon.modes
        }

        /// ``Daemon/stop(status:)``.
        public func stop(status: Int32 = 0) {
            loop.perform(inModes: modes) { _ in self.daemon?.stop(status: status) }
        }

        /// ``Daemon/hurry()``.
        public func hurry() {
            loop.perform(inModes: modes) { _ in self.daemon?.hurry() }
        }

        /// ``Daemon/reload()``.
        public func reload() {
            loop.perform(inModes: modes) { _ in self.daemon?.reload() }
        }

        func abandonRun() {
            loop.perform(inModes: modes) { _ in self.daemon?.abandonRun() }
        }

        func finished(_ call: Int) {
            loop.perform(inModes: modes) { _ in self.daemon?.finished(call) }
        }
    }

    /// The completion of a hook, to be called when the hook has finished: `done()`. Any thread. Repeated calls are
    /// harmless, and so are calls after the daemon has given up the hook.
    public struct Completion: Sendable {
        private let remote: Remote
        let call: Int

        init(_ remote: Remote, call: Int) {
            self.remote = remote
            self.call = call
        }

        /// Reports that the hook has finished. The daemon continues in a later step of the loop, never from within this
        /// call.
        public func callAsFunction() {
            remote.finished(call)
        }
    }
}
