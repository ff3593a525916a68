internal import CShims
@_spi(Ports) internal import RunLoopKit

/// The knowledge of a loop that only its thread has.
struct LoopReport: Sendable {
    /// The means of the console's thread to watch the loop without an answer.
    struct Access: Sendable {
        /// The memory of the loop's recorder, if it has one: its own, or the console's.
        let memory: FlightRecorder.Memory?
        /// The kernel's number of the thread.
        let thread: Int32

        /// - Parameter records: whether a loop without a recorder gets one.
        init(_ loop: RunLoop, records: Bool) {
            if records, loop.flightMemory == nil {
                loop[ownRecorder] = try? FlightRecorder(loop, events: 16_384)
            }
            (memory, thread) = (loop.flightMemory, rlk_thread_id())
        }
    }

    let access: Access
    let dump: RunLoop.Dump
    /// The time that it took to make this report.
    let cost: Duration

    /// Creates a report, on the loop's thread, which records from then on.
    init(_ loop: RunLoop) {
        let begin = loop.now
        access = Access(loop, records: true)
        dump = loop.dump()
        cost = loop.now - begin
    }

    /// Ends the console's own recording. On the loop's thread.
    static func endRecording(of loop: RunLoop) { loop[ownRecorder] = nil }
}

/// The recorder that a console has given to a loop without one.
private let ownRecorder = RunLoop.Local<FlightRecorder?> { _ in nil }
