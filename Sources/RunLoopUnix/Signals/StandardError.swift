internal import CShims
internal import Glibc
internal import RunLoopCore

/// Writes texts one after another, without blocking the caller when the reader is slow.
///
/// A daemon that logs to a full pipe blocks until a process reads from it, unless it logs through this stream:
///
/// ```swift
/// Logger(label: "daemon", factory: { StreamLogHandler(label: $0, stream: StandardError.shared) })
/// ```
///
/// As much of a text as fits is written at once; a thread writes the rest. At most 4 MiB may wait. Texts beyond that
/// are dropped, and a line reports the number of dropped lines as soon as there is room for it.
public final class StandardError: TextOutputStream, Sendable {
    /// The process's standard error.
    public static let shared = StandardError(descriptor: STDERR_FILENO, capacity: 4 << 20)

    private let descriptor: Int32
    private let capacity: Int
    private let state = Locked(State())

    private struct State {
        /// The bytes that wait for the thread.
        var rest: [UInt8] = []
        var isWriting = false
        /// The number of lines that were dropped.
        var dropped = 0
    }

    /// The descriptor's mode is not changed, because other processes share it. A text that begins when `capacity` bytes
    /// wait is dropped, and counted.
    init(descriptor: Int32, capacity: Int) {
        (self.descriptor, self.capacity) = (descriptor, capacity)
    }

    var isIdle: Bool { state.withLock { !$0.isWriting } }

    /// Writes a text, now or later. Any thread; it does not wait.
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

    /// Waits until everything is written, but no longer than `limit`. Use it before the process ends, because unwritten
    /// text is then lost. Any thread.
    public func flush(within limit: Duration) {
        // In real time, also on a thread of a simulation: the thread that writes is real.
        let flag = rlk_set_simulated(nil)
        defer { rlk_set_simulated(flag) }
        let deadline = ContinuousClock.now + limit
        while !isIdle, ContinuousClock.now < deadline { usleep(1_000) }
    }

    /// Writes bytes, each time as many as a ready pipe accepts without blocking.
    ///
    /// - Parameter waits: whether to wait until the descriptor is ready, also if it is non-blocking.
    /// - Returns: the number of bytes that need no further write: all if no reader is left.
    private func write(_ bytes: [UInt8], waits: Bool) -> Int {
        var done = 0
        while done < bytes.count {
            var request = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
            if poll(&request, 1, waits ? -1 : 0) != 1, !waits { return done }
            let count = bytes[done...].prefix(Int(PIPE_BUF)).withUnsafeBytes {
                rlk_write_quietly(descriptor, $0.baseAddress, $0.count)
            }
            guard count > 0 || count < 0 && (errno == EINTR || errno == EAGAIN) else { return bytes.count }
            done += max(count, 0)
        }
        return done
    }

    private func startThread() {
        var thread = pthread_t()
        // Unmanaged: C passes a pointer to the thread, which takes over the reference.
        let context = Unmanaged.passRetained(self)
        // It writes in real time, also for a simulation, and touches none.
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
        // Without a thread the text waits for the next one.
        context.release()
        state.withLock { $0.isWriting = false }
    }

    private func takeRest() -> [UInt8]? {
        state.withLock { state in
            guard !state.rest.isEmpty || state.dropped > 0 else {
                state.isWriting = false
                return nil
            }
            defer { (state.rest, state.dropped) = ([], 0) }
            return state.dropped == 0 ? state.rest : state.rest + "(\(state.dropped) lines left out)\n".utf8
        }
    }
}
