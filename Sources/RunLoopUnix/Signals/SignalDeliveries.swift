public import RunLoopKit

extension RunLoop {
    /// The deliveries of a signal from now on, for a task.
    ///
    /// ```swift
    /// let requests = try loop.deliveries(of: .hangUp)
    /// loop.task { for try await _ in requests { reload() } }
    /// ```
    ///
    /// A ``SignalSource`` counts them, in `modes` of this loop, as long as the sequence exists. On the loop's thread;
    /// O(number of sources in the process).
    ///
    /// - Throws: ``SignalError`` if the signal cannot be handled; ``SystemError`` if no descriptor is left.
    /// - Precondition: there is a mode.
    public func deliveries(
        of signal: Signal, inModes modes: Modes = .common, file: StaticString = #fileID, line: UInt32 = #line
    ) throws -> SignalDeliveries {
        require(!modes.isEmpty, "deliveries need a mode; without any, none would be noticed")
        return try SignalDeliveries(of: signal, on: self, modes, file: file, line: line)
    }
}

/// The deliveries of a signal, made by `RunLoop.deliveries(of:)`. Each element is the number of deliveries since the
/// last element, at least 1: deliveries while no task waits are counted, and take no room.
///
/// A cancelled wait takes none of them. An iteration throws `CancellationError`, or `RunLoop.WaitError` if another task
/// waits or if the loop has ended; it does not end otherwise. When the sequence and its iterators are released, the
/// signal's former disposition is restored, as with a ``SignalSource``.
///
/// It belongs to the loop's thread and is not `Sendable`.
public final class SignalDeliveries: AsyncSequence {
    private let remote: RunLoop.Remote
    private let source: SignalSource
    private let waiter: TaskWait
    private let counter: Counter

    fileprivate init(
        of signal: Signal, on loop: RunLoop, _ modes: RunLoop.Modes, file: StaticString, line: UInt32
    ) throws {
        remote = loop.remote
        let (waiter, counter) = (TaskWait(loop.remote), Counter())
        (self.waiter, self.counter) = (waiter, counter)
        source = try SignalSource(
            signal: signal,
            handler: { source in
                counter.count += source.count
                waiter.end()
            }, file: file, line: line)
        source.invalidationHandler = {
            counter.hasLostLoop = true
            waiter.end()
        }
        try loop.add(source, forMode: modes)
    }

    /// The counter that the source's handler keeps, so that it does not keep the deliveries.
    private final class Counter {
        var count = 0
        var hasLostLoop = false
    }

    deinit {
        source.invalidationHandler = nil
        source.invalidate()
    }

    /// An iteration. Deliveries go to the iteration that asks first.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(deliveries: self) }

    /// An iteration over deliveries. It belongs to the loop's thread and is not `Sendable`.
    public struct AsyncIterator: AsyncIteratorProtocol {
        let deliveries: SignalDeliveries

        /// Waits until there is a delivery, and takes all pending ones. On the loop's thread.
        ///
        /// - Throws: `CancellationError`; `RunLoop.WaitError` if another task waits, or if the loop has ended.
        public func next(isolation: isolated (any Actor)? = #isolation) async throws -> Int? {
            try await deliveries.take()
        }
    }

    private nonisolated(nonsending) func take() async throws -> Int {
        while counter.count == 0 {
            guard !counter.hasLostLoop else { throw remote.endError }
            require(
                remote.isCurrent,
                "signals are awaited on the loop's thread: in a task of the loop, or in one that prefers its executor")
            guard !waiter.isTaken else { throw RunLoop.WaitError.alreadyWaiting("deliveries of \(source.signal)") }
            try await waiter.wait()
        }
        defer { counter.count = 0 }
        return counter.count
    }
}

@available(*, unavailable, message: "deliveries belong to the loop's thread")
extension SignalDeliveries: Sendable {}

@available(*, unavailable, message: "an iteration belongs to the loop's thread")
extension SignalDeliveries.AsyncIterator: Sendable {}
