@_spi(Ports) public import RunLoopKit

extension RunLoop {
    /// Returns a sequence of a signal's deliveries from now on, for a task.
    ///
    /// ```swift
    /// let requests = try loop.deliveries(of: .hangUp)
    /// loop.task { for try await _ in requests { reload() } }
    /// ```
    ///
    /// A ``SignalSource`` counts the deliveries in `modes` of this loop while the sequence exists. Call it on the
    /// loop's thread. O(number of sources in the process).
    ///
    /// - Throws: ``SignalError`` if the signal cannot be handled; ``SystemError`` if no descriptor is left.
    /// - Precondition: `modes` is not empty.
    public func deliveries(
        of signal: Signal, inModes modes: Modes = .common, file: StaticString = #fileID, line: UInt32 = #line
    ) throws -> SignalDeliveries {
        require(!modes.isEmpty, "deliveries need a mode; without any, none would be noticed")
        return try SignalDeliveries(of: signal, on: self, modes, file: file, line: line)
    }
}

/// A sequence of a signal's deliveries, returned by `RunLoop.deliveries(of:)`. Each element is the number of deliveries
/// since the last element, at least 1. Deliveries while no task waits are counted without taking memory.
///
/// A cancelled wait consumes no deliveries. An iteration throws `CancellationError`, or `RunLoop.WaitError` if another
/// task waits or the loop has ended; otherwise it does not end. When the sequence and its iterators are released, the
/// signal's former disposition is restored, as with a ``SignalSource``.
///
/// The sequence belongs to the loop's thread and is not `Sendable`.
public final class SignalDeliveries: AsyncSequence {
    private let wait: TaskWait
    private var count = 0
    private var source: SignalSource?

    fileprivate init(
        of signal: Signal, on loop: RunLoop, _ modes: RunLoop.Modes, file: StaticString, line: UInt32
    ) throws {
        wait = NamedWait(loop.remote, "waits for a signal")
        let source = try SignalSource(
            signal: signal,
            handler: { [unowned self] source in
                count += source.count
                wait.end()
            }, file: file, line: line)
        source.invalidationHandler = { [wait] in wait.end(throwing: wait.remote.endError) }
        try loop.add(source, forMode: modes)
        self.source = source
    }

    deinit {
        source?.invalidationHandler = nil
        source?.invalidate()
    }

    /// Returns an iterator. Deliveries go to the iterator that asks first.
    public func makeAsyncIterator() -> RunLoop.TaskSequence<Int> { RunLoop.TaskSequence { try await self.take() } }

    private nonisolated(nonsending) func take() async throws -> Int {
        while count == 0 {
            try await wait.admit(for: "deliveries of \(source!.signal)")
            try await wait.wait()
        }
        assert(count > 0, "a wait for a signal has ended without one")
        defer { count = 0 }
        return count
    }
}

@available(*, unavailable, message: "deliveries belong to the loop's thread")
extension SignalDeliveries: Sendable {}
