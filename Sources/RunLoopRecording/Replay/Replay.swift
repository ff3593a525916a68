internal import Glibc
@_spi(Ports) internal import RunLoopCore
internal import RunLoopUnix
internal import Synchronization

/// The shared state of a replay that is under way.
final class Replay: Sendable {
    let contents: RecordContents
    let options: ReplayOptions
    private let state = Locked(State())
    /// The number of events so far.
    private let progress = Atomic<UInt64>(0)
    private let nobody = Handoff()
    let turns = ReplayTurns()

    private struct State {
        /// The number of running threads, and how many of them have reached the end of their tape.
        var threads = 0
        var parked = 0
        /// The events at which threads wait for mail, and the senders.
        var resting: [String: String] = [:]
    }

    init(_ contents: RecordContents, _ options: ReplayOptions) {
        (self.contents, self.options) = (contents, options)
    }

    // MARK: Threads

    /// - Parameter time: the time of the thread's maker.
    func threadBegan(_ number: UInt32, at time: Int64) {
        state.withLock { $0.threads += 1 }
        turns.begin(number, at: time)
    }

    func threadEnded(_ number: UInt32) {
        state.withLock { $0.threads -= 1 }
        turns.end(number)
    }

    @inline(__always)
    func eventEnded() {
        progress.add(1, ordering: .relaxed)
    }

    /// Ends a thread whose tape has ended. Other threads may continue to the ends of theirs.
    func tapeEnded(_ number: UInt32) -> Never {
        turns.end(number)
        let isLast = state.withLock { state in
            state.parked += 1
            return state.parked >= state.threads
        }
        if !isLast { while hasProgressed(until: nobody) {} }
        options.onEnd(.endOfRecord(contents.end))
    }

    /// Waits for mail that has to come.
    ///
    /// - Parameter name: the name of its sender.
    func rest(until mailComes: Handoff, from name: String, for thread: String, _ event: UInt64) {
        state.withLock { $0.resting[thread] = "event \(event), mail from \(name)" }
        while true {
            if mailComes.wait(atMost: .milliseconds(500)) {
                return state.withLock { $0.resting[thread] = nil }
            }
            if !hasProgressed(until: mailComes) { break }
        }
        let (hasEnded, resting) = state.withLock { ($0.parked > 0, $0.resting) }
        if hasEnded { options.onEnd(.endOfRecord(contents.end)) }
        let others = resting.filter { $0.key != thread }.sorted { $0.key < $1.key }.map { "; \($0) at \($1)" }.joined()
        options.onDivergence(
            Divergence(
                thread: thread, event: event, recorded: "mail from \(name)",
                asked: "it, and no thread posts any\(others.isEmpty ? "" : " (other threads wait, too\(others))")"))
    }

    /// Waits for two seconds.
    ///
    /// - Returns: `false` if there was neither an event nor work meanwhile.
    private func hasProgressed(until signal: Handoff) -> Bool {
        let (events, time) = (progress.load(ordering: .relaxed), processTime)
        if signal.wait(atMost: .seconds(2)) {
            signal.signal()
            return true
        }
        return progress.load(ordering: .relaxed) != events || processTime - time > .milliseconds(20)
    }

    // MARK: The end

    func ends(at event: UInt64, of tape: UInt32) -> Bool {
        options.until.map { $0.thread == Int(tape) && event >= $0.event } ?? false
    }

    /// Reports a call from a thread that has no tape.
    func foreignCall(_ what: String) -> Never {
        options.onDivergence(
            Divergence(
                thread: "a thread that is not part of the record", event: 0, recorded: "nothing of such threads",
                asked: what))
    }
}
