internal import CShims
internal import Glibc
@_spi(Ports) internal import RunLoopCore

/// A text stream that never blocks the caller, even if the reader is slow.
///
/// A daemon that logs to a full pipe blocks until a process reads from the pipe. This stream avoids that:
///
/// ```swift
/// Logger(label: "daemon", factory: { StreamLogHandler(label: $0, stream: StandardError.shared) })
/// ```
///
/// As much of a text as fits is written at once; a thread writes the rest. At most 4 MiB may wait. Further texts are
/// dropped, and a line reports the number of dropped lines once there is room.
public final class StandardError: TextOutputStream, Sendable {
    /// The process's standard error.
    public static let shared = StandardError(descriptor: STDERR_FILENO, capacity: 4 << 20)

    private let descriptor: Int32
    private let capacity: Int
    private let state = Locked(State())

    private struct State {
        /// The bytes waiting for the thread.
        var rest: [UInt8] = []
        var isWriting = false
        /// The number of dropped lines.
        var dropped = 0
    }

    /// Creates a stream. The descriptor's mode is not changed, because other processes share it. A text that arrives
    /// while `capacity` bytes wait is dropped and counted.
    init(descriptor: Int32, capacity: Int) {
        (self.descriptor, self.capacity) = (descriptor, capacity)
    }

    var isIdle: Bool { state.withLock { !$0.isWriting } }

    /// Writes a text, now or later, without waiting. Any thread.
    public func write(_ text: String) {
        let startsThread = state.withLock { state in
            guard state.rest.count < capacity else {
                state.dropped += max(1, text.utf8.count { $0 == UInt8(ascii: "\n") })
                return false
            }
            state.rest += text.utf8
            guard !state.isWriting else { return false }
            state.rest.removeFirst(write(state.rest, waits: false))
            state.isWriting = !state.rest.isEmpty
            return state.isWriting
        }
        if startsThread { startThread() }
    }

    /// Waits until everything is written, but no longer than `limit`. Call it before the process ends, which would lose
    /// unwritten text. Any thread.
    public func flush(within limit: Duration) {
        // Waits in real time, even on a simulated thread, because the writing thread is real.
        let flag = rlk_set_simulated(nil)
        defer { rlk_set_simulated(flag) }
        let deadline = ContinuousClock.now + limit
        while !isIdle, ContinuousClock.now < deadline { usleep(1_000) }
    }

    /// Writes bytes, at each step as many as a ready pipe accepts without blocking.
    ///
    /// - Parameter waits: whether to wait until the descriptor is ready, even if it is non-blocking.
    /// - Returns: the number of bytes that need no further write; all of them if no reader is left.
    private func write(_ bytes: [UInt8], waits: Bool) -> Int {
        var done = 0
        while done < bytes.count {
            var request = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
            if poll(&request, 1, waits ? -1 : 0) != 1, !waits { return done }
            let count = bytes[done...].prefix(Int(PIPE_BUF)).withUnsafeBytes {
                rlk_write_quietly(descriptor, $0.baseAddress, $0.count)
            }
            guard count > 0 || count < 0 && (errno == EINTR || errno == EAGAIN) else { return bytes.count }
            assert(count <= bytes.count - done, "more was written than there was")
            done += max(count, 0)
        }
        return done
    }

    private func startThread() {
        var thread = pthread_t()
        // Unmanaged: C passes a pointer to the thread, which takes over the reference.
        let context = Unmanaged.passRetained(self)
        // The thread writes in real time even for a simulation, and touches no simulation.
        let flag = rlk_set_simulated(nil)
        defer { rlk_set_simulated(flag) }
        let status = pthread_create(
            &thread, nil,
            { context in
                let stream = Unmanaged<StandardError>.fromOpaque(context!).takeRetainedValue()
                while let bytes = stream.takeRest() { _ = stream.write(bytes, waits: true) }
                return nil
            }, context.toOpaque())
        if status == 0 { return _ = pthread_detach(thread) }
        // Without a thread, the text waits for the next call.
        context.release()
        state.withLock { $0.isWriting = false }
    }

    private func takeRest() -> [UInt8]? {
        state.withLock { state in
            assert(state.isWriting, "text is taken that no thread writes")
            guard !state.rest.isEmpty || state.dropped > 0 else {
                state.isWriting = false
                return nil
            }
            defer { (state.rest, state.dropped) = ([], 0) }
            return state.dropped == 0 ? state.rest : state.rest + "(\(state.dropped) lines left out)\n".utf8
        }
    }
}
