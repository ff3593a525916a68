internal import Glibc

/// Records the runs, sleeps and calls of a loop: each sleep with the reason for its end, each call of a handler or poll
/// of a task with its kind, name, line, mode and duration, the causes of calls, and the bytes of connections.
///
/// The newest events are kept, in memory of a fixed size. With a path, that memory is the file: if the process is
/// killed, traps or hangs, the file has everything until then, and the last handler with its line. The flight of the
/// previous process is kept as `PATH.1`. If another program shortens the file, the loop continues without a record, and
/// a line on standard error says so.
///
/// ```swift
/// let recorder = try FlightRecorder(loop, at: "/var/lib/daemon/flight")
/// defer { withExtendedLifetime(recorder) {} }
/// loop.run()
/// ```
///
/// Keep the recorder: its release ends the recording. Connections that were started before it are not counted. A call
/// of a handler costs one reading of the clock, and two events of 24 bytes; no system call, and no allocation once its
/// name is known. A posted block costs one allocation. A loop without a recorder pays nothing. A loop has one recorder
/// at a time: a new one replaces the previous one. A recorder belongs to its loop's thread and is not `Sendable`; its
/// ``memory`` may be read on any.
///
/// Follows the flight recorders of Java and Go.
public final class FlightRecorder {
    /// The memory of a recorder, for any thread: a ``StallMonitor``'s thread can write the events that led to a stall.
    /// `Sendable`.
    public struct Memory: Sendable {
        let memory: FlightMemory
        let isReplay: Bool

        /// Returns the flight until now. O(size).
        public func flight() throws(FlightError) -> Flight { try flight(from: 0) }

        /// Returns the flight from an event on, whose number is the ``Flight/end`` of an earlier one. O(size) to copy.
        @_spi(Ports) public func flight(from start: Int) throws(FlightError) -> Flight {
            let (bytes, written) = memory.copy()
            return try Flight(bytes, written: written, from: start)
        }

        /// Returns whether both are the memory of one recorder.
        @_spi(Ports) public func isSame(as other: Memory) -> Bool { memory === other.memory }

        /// Writes the flight until now to a file, which it replaces. O(size). In a replay the file stays as it is.
        ///
        /// - Throws: ``FlightError`` if that fails.
        public func write(to path: String) throws(FlightError) {
            guard !isReplay else { return }
            let bytes = memory.copy().bytes
            guard let file = fopen(path, "w") else { throw .file(path, errno: errno) }
            let count = fwrite(bytes, 1, bytes.count, file)
            let reason = errno
            guard fclose(file) == 0, count == bytes.count else { throw .file(path, errno: reason) }
        }
    }

    /// The recorded events. Any thread may read them, also when recording has stopped.
    public let memory: Memory

    // Not a weak reference to the loop, which would make each of its references take four times as long.
    private let remote: RunLoop.Remote
    private let log: FlightLog

    /// Begins to record. Call it on the loop's thread, perhaps in a handler, whose own end is then not recorded.
    ///
    /// - Parameters:
    ///   - loop: the loop.
    ///   - events: the number of newest events to keep, 24 bytes each; at least 16.
    ///   - names: the bytes for the names of handlers and lines, at least 4,096. A name that does not fit is left out,
    ///     and the line stays.
    ///   - path: a file for the memory, with the mode 600; `nil` for the process's own memory. A replay ignores the
    ///     path, and leaves the file of the recorded run as it is.
    /// - Throws: ``FlightError`` if the file cannot be written, or the system refuses the memory.
    /// - Precondition: a loop of a simulation has no path; write its flight to a file when it is over.
    public init(_ loop: RunLoop, events: Int = 65_536, names: Int = 256 * 1024, at path: String? = nil)
        throws(FlightError)
    {
        loop.checkThread()
        require(events >= 16, "a flight has at least 16 events, not \(events)")
        require(names >= 4096, "a flight has at least 4096 bytes for names, not \(names)")
        require(
            path == nil || !loop.isVirtual,
            "a simulated loop records into memory; write its flight to a file afterwards")
        let isReplay = loop.world.isReplay
        let memory = try FlightMemory(
            events: events, nameBytes: (names + 7) / 8 * 8, path: isReplay ? nil : path)
        let now = loop.now
        memory[.process] = UInt64(getpid())
        memory[.loopTime] = UInt64(bitPattern: now.nanoseconds)
        memory[.wallTime] = UInt64(bitPattern: loop.world.wallTime.nanoseconds)
        let title = Array((loop.name ?? "loop").utf8.prefix(FlightMemory.longestTitle))
        memory.write(title, at: FlightMemory.titleStart)
        memory[.titleLength] = UInt64(title.count)
        self.memory = Memory(memory: memory, isReplay: isReplay)
        remote = loop.remote
        log = FlightLog(memory, at: now, latenesses: (loop.statistics.lateness.count, loop.statistics.lateness.sum))
        loop.watching.log?.end()
        loop.follow { $0.log = log }
    }

    deinit {
        if let loop = remote.installedReference {
            loop.with { Self.end(log, in: $0) }
        } else {
            // Unsafe, but the loop's thread uses it.
            nonisolated(unsafe) let log = log
            _ = remote.mailbox.post(.urgent { Self.end(log, in: $0) })
        }
    }

    private static func end(_ log: FlightLog, in loop: RunLoop) {
        log.end()
        if loop.watching.log === log { loop.follow { $0.log = nil } }
    }
}

extension RunLoop {
    /// The memory of the loop's recorder, if it has one. On the loop's thread.
    @_spi(Ports) public var flightMemory: FlightRecorder.Memory? {
        watching.log.map { FlightRecorder.Memory(memory: $0.memory, isReplay: world.isReplay) }
    }
}

@available(*, unavailable, message: "a recorder belongs to its loop's thread; its memory may be read on any")
extension FlightRecorder: Sendable {}
