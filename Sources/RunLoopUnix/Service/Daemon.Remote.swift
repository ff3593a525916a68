internal import RunLoopKit

extension Daemon {
    /// What other threads may ask of a daemon. Each request wakes its loop, and is carried out on the loop's thread, in
    /// the common modes and the daemon's own; once the daemon has gone nothing happens. Any thread.
    public final class Remote: Sendable {
        private let loop: RunLoop.Remote
        private let modes: RunLoop.Modes
        // Set once, here, and read only on the thread of the daemon's loop, when the loop delivers the request.
        private nonisolated(unsafe) weak let daemon: Daemon?

        init(_ daemon: Daemon) {
            self.daemon = daemon
            loop = daemon.loop.remote
            modes = [.common, RunLoop.Modes(daemon.mode)]
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

        func finished(_ call: Int) {
            loop.perform(inModes: modes) { _ in self.daemon?.finished(call) }
        }
    }

    /// With which a hook says that it is done: `done()`. Any thread; harmless when repeated, and when the hook is not
    /// waited for any more.
    public struct Completion: Sendable {
        private let remote: Remote
        private let call: Int

        init(_ remote: Remote, call: Int) {
            self.remote = remote
            self.call = call
        }

        /// The hook is done. What follows comes in a later step of the loop, never from within this call.
        public func callAsFunction() {
            remote.finished(call)
        }
    }
}
