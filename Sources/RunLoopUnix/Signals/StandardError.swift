internal import CShims
internal import Glibc
internal import RunLoopCore

/// Writes texts one after another, without having the caller wait for a reader that does not read.
///
/// A daemon that logs to a pipe stops when nobody empties it, unless it logs through this:
///
/// ```swift
/// Logger(label: "daemon", factory: { StreamLogHandler(label: $0, stream: StandardError.shared) })
/// ```
///
/// As much of a text as there is room for is written at once, and the rest by a thread. 4 MiB may wait. Texts beyond that are
/// left out, and a line says how many lines were, as soon as there is room for it.
public final class StandardError: TextOutputStream, Sendable {
    /// The process's standard error.
    public static let shared = StandardError(descriptor: STDERR_FILENO, capacity: 4 << 20)

    private let descriptor: Int32
    private let capacity: Int
    private let state = Locked(State())

    private struct State {
        /// What waits for the thread.
        var rest: [UInt8] = []
        var isWriting = false
        /// How many lines there was no room for.
        var dropped = 0
    }

    /// - Parameters:
    ///   - descriptor: where to write; its mode is left as it is, since others have it, too.
    ///   - capacity: how many bytes may wait. A text that begins when there are as many is dropped, and counted.
    init(descriptor: Int32, capacity: Int) {
        (self.descriptor, self.capacity) = (descriptor, capacity)
    }

    /// Whether nothing waits to be written.
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
            state.rest.removeFirst(writeAtOnce(state.rest))
            state.isWriting = !state.rest.isEmpty
            return state.isWriting
        }
        if startsThread { startThread() }
    }

    /// Waits until everything is written, but no longer than this: for the end of a process, which loses the rest. Any thread.
    public func flush(within limit: Duration) {
        let deadline = ContinuousClock.now + limit
        while !isIdle, ContinuousClock.now < deadline { usleep(1_000) }
    }

    /// Writes what there is room for.
    ///
    /// - Returns: how many bytes are done with.
    private func writeAtOnce(_ bytes: [UInt8]) -> Int {
        var done = 0
        while done < bytes.count {
            var request = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
            guard poll(&request, 1, 0) == 1 else { return done }
            guard let count = writeSome(bytes[done...]) else { return bytes.count }
            done += count
        }
        return done
    }

    /// Writes as much as a pipe that is ready takes without having the writer wait.
    ///
    /// - Returns: `nil` if nobody will ever read it.
    private func writeSome(_ bytes: ArraySlice<UInt8>) -> Int? {
        let count = bytes.prefix(Int(PIPE_BUF)).withUnsafeBytes {
            rlk_write_quietly(descriptor, $0.baseAddress, $0.count)
        }
        if count < 0, errno == EINTR || errno == EAGAIN { return 0 }
        return count > 0 ? count : nil
    }

    private func startThread() {
        var thread = pthread_t()
        // Unmanaged: C passes a pointer to the thread, which takes the reference over.
        let context = Unmanaged.passRetained(self)
        let status = pthread_create(
            &thread, nil,
            { context in
                Unmanaged<StandardError>.fromOpaque(context!).takeRetainedValue().writeRest()
                return nil
            }, context.toOpaque())
        if status == 0 { return _ = pthread_detach(thread) }
        // Without a thread the text waits for the next one.
        context.release()
        state.withLock { $0.isWriting = false }
    }

    private func writeRest() {
        while let bytes = takeRest() {
            var rest = bytes[...]
            while !rest.isEmpty {
                // A descriptor that does not wait by itself is waited for here.
                var request = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                poll(&request, 1, -1)
                guard let count = writeSome(rest) else { break }
                rest = rest.dropFirst(count)
            }
        }
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
