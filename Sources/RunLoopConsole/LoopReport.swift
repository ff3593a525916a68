internal import CShims
internal import RunLoopKit

/// What only the thread of a loop can tell of it.
struct LoopReport: Sendable {
    let dump: RunLoop.Dump
    /// The memory of the loop's recorder: its own, or the console's.
    let memory: FlightRecorder.Memory?
    /// The kernel's number of the thread.
    let thread: Int32
    /// How long it took to make this.
    let cost: Duration

    /// On the loop's thread.
    init(_ loop: RunLoop) {
        let begin = loop.now
        if loop.flightMemory == nil { loop[ownRecorder].recorder = try? FlightRecorder(loop, events: 16_384) }
        dump = loop.dump()
        memory = loop.flightMemory
        thread = rlk_thread_id()
        cost = loop.now - begin
    }

    /// Ends the console's own recording. On the loop's thread.
    static func endRecording(of loop: RunLoop) { loop[ownRecorder].recorder = nil }
}

/// The recorder that a console has given a loop without one.
private final class OwnRecorder {
    var recorder: FlightRecorder?
}

private let ownRecorder = RunLoop.Local { _ in OwnRecorder() }
