internal import RunLoopCore

/// The descriptor source beneath another source, and the registration that counts its signals.
///
/// While it is in a loop, the loop keeps it, and its handler keeps the outer source.
final class InnerSource {
    private var descriptor: DescriptorSource?
    private var registration: (any SignalCounter)?
    /// Called when the source has left its loop, also at the loop's end.
    var removalHandler: (() -> Void)?
    /// Whether the source was ever in a loop.
    private(set) var wasAdded = false

    /// Adds the descriptor source to modes of a loop; makes it first if there is none.
    func add(
        to loop: RunLoop, _ modes: RunLoop.Modes, for operation: String,
        _ make: () throws(SystemError) -> (DescriptorSource, (any SignalCounter)?)
    ) throws(SystemError) {
        guard !modes.isEmpty else { return }
        let (source, registration) = if let descriptor { (descriptor, self.registration) } else { try make() }
        do {
            try loop.add(source, forMode: modes)
        } catch .system(_, let errno) {
            throw SystemError(operation, errno: errno)
        } catch {
            // The descriptor is our own, so only the system can refuse it.
            fatalError("\(operation): \(error)")
        }
        source.removalHandler = { [self] in letGo() }
        (descriptor, self.registration, wasAdded) = (source, registration, true)
        // The loop has ended.
        if !source.isValid { letGo() }
    }

    func remove(from loop: RunLoop, _ modes: RunLoop.Modes) {
        if let descriptor { loop.remove(descriptor, fromMode: modes) }
    }

    /// Removes the source from its loop permanently. Traps on any thread except the loop's.
    func invalidate() {
        descriptor?.invalidate()
    }

    /// Ends the registration at once, even within the handler: a handler that invalidates its source and then raises
    /// the signal expects the former disposition.
    private func letGo() {
        registration?.end()
        registration = nil
        let descriptor = self.descriptor
        self.descriptor = nil
        descriptor?.removalHandler = nil
        descriptor?.invalidate()
        removalHandler?()
    }
}
