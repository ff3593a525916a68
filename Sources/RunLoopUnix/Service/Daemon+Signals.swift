internal import RunLoopKit

extension Daemon {
    /// Handles the signals of a service from now on. `SIGTERM` and `SIGINT` stop the daemon, and a second one hurries
    /// the stop. `SIGHUP` reloads it. `SIGPIPE` is ignored, so that a write to a peer that has gone fails instead of
    /// ending the process.
    ///
    /// Call this before anything that takes time: a signal that arrives while the daemon starts then waits for the
    /// loop. The sources are in the daemon's modes and last as long as the daemon. Call it once, on the loop's thread.
    ///
    /// - Parameter heard: called first with each signal, for example to log it.
    /// - Throws: ``SystemError`` if no descriptor is left.
    public func handleSignals(_ heard: @escaping (Signal) -> Void = { _ in }) throws {
        require(
            signals.isEmpty,
            "the daemon handles its signals already, and a second time the first of them would hurry it; what else is to "
                + "hear of them has signal sources of its own")
        try Signal.ignore(.pipe)
        try handle(.terminate, heard) { $0.stop() }
        try handle(.interrupt, heard) { $0.stop() }
        try handle(.hangUp, heard) { $0.reload() }
    }

    private func handle(
        _ signal: Signal, _ heard: @escaping (Signal) -> Void, _ action: @escaping (Daemon) -> Void
    ) throws {
        let source = try SignalSource(signal: signal) { [weak self] _ in
            heard(signal)
            if let self { action(self) }
        }
        try loop.add(source, forMode: modes)
        signals.append(source)
    }
}
