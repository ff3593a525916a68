internal import NIOCore
internal import RunLoopKit

/// The members of the chat on one loop, in the order of their arrival. On the loop's thread.
final class Room {
    static let ofLoop = RunLoop.Local { _ in Room() }

    private var members: [ChatMember] = []
    private var unflushed: [ChatMember] = []

    func add(_ member: ChatMember) { members.append(member) }

    func remove(_ member: ChatMember) { members.removeAll { $0 === member } }

    func deliver(_ text: ByteBuffer) {
        // A member who is too slow leaves meanwhile.
        for member in members { member.deliver(text) }
    }

    /// Flushes the member's output when the messages of this pass have been delivered: one call of the system for all.
    func flushLater(_ member: ChatMember) {
        unflushed.append(member)
        guard unflushed.count == 1 else { return }
        RunLoop.current.perform(inModes: .every) { [self] in
            let members = unflushed
            unflushed.removeAll()
            for member in members where member.isUnflushed { member.flush() }
        }
    }
}
