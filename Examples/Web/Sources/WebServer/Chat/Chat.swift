internal import CoreMetrics
internal import NIOCore
internal import RunLoopKit
internal import RunLoopUnix
internal import Synchronization

/// Passes each message to the members on all loops. Any thread.
final class Chat: Sendable {
    private let loops: LoopGroup
    private let measures: Measures
    private let members = Atomic(0)
    private let posting = Mutex(())

    init(_ loops: LoopGroup, _ measures: Measures) {
        (self.loops, self.measures) = (loops, measures)
    }

    /// Posts a message, which members receive in the same order on all loops.
    func post(_ text: ByteBuffer) {
        posting.withLock { _ in loops.performOnEach { $0[Room.ofLoop].deliver(text) } }
    }

    /// Flushes the member's output once this pass has delivered its messages. Called on the member's loop.
    func flushLater(_ member: ChatMember) { RunLoop.current[Room.ofLoop].flushLater(member) }

    /// Adds a member. Called on its loop.
    func join(_ member: ChatMember) {
        RunLoop.current[Room.ofLoop].add(member)
        measures.members.record(members.add(1, ordering: .relaxed).newValue)
    }

    /// Removes a member. Called on its loop.
    func leave(_ member: ChatMember) {
        RunLoop.current[Room.ofLoop].remove(member)
        measures.members.record(members.subtract(1, ordering: .relaxed).newValue)
    }
}
