internal import NIOCore
internal import RunLoopKit

/// The members of the chat on one loop, in the order in which they came. On the loop's thread.
final class Room {
    static let ofLoop = RunLoop.Local { _ in Room() }

    private var members: [ChatMember] = []

    func add(_ member: ChatMember) { members.append(member) }

    func remove(_ member: ChatMember) { members.removeAll { $0 === member } }

    func deliver(_ text: ByteBuffer) {
        // A member who is too slow leaves meanwhile.
        for member in members { member.deliver(text) }
    }
}
