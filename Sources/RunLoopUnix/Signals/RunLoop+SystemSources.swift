@_spi(Ports) internal import RunLoopCore

extension RunLoop {
    /// Schedules a source, for which `open` makes a descriptor in each loop that the source joins. Errors name the
    /// operation.
    func schedule(
        _ source: SystemSource, _ modes: Modes, for operation: String, open: () throws(SystemError) -> Int32
    ) throws(SystemError) {
        guard admits(source), !modes.isEmpty else { return }
        if !source.isScheduled { source.descriptor = try open() }
        assert(source.descriptor >= 0, "a source of the system has no descriptor")
        do {
            try schedule(source, modes)
        } catch .system(_, let errno) {
            source.cleanup?()
            throw SystemError(operation, errno: errno)
        } catch {
            // The descriptor is the source's own, so only the system can refuse it.
            fatalError("\(operation): \(error)")
        }
    }
}
