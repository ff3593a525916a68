import Glibc
import RunLoopKit

/// Holds conversations over a real link and over a simulated one, and compares them.
///
///     Links CLIENT-NAMESPACE SERVER-NAMESPACE [NAME…]   compares all, or some, and ends with 1 if one differs
///     Links client NAME, Links server NAME              takes one side of a conversation
@main
enum Links {
    static func main() throws {
        let arguments = CommandLine.arguments.dropFirst().map(\.self)
        guard arguments.count > 1 else { return print("Tests/links-checks calls this program") }
        if let side = Side.Name(rawValue: arguments[0]), let conversation = Conversation.named(arguments[1]) {
            return try Participant.takePart(as: side, in: conversation)
        }
        let link = try RealLink(
            namespaces: [.client: arguments[0], .server: arguments[1]], on: RunLoop.current)
        var isSame = true
        for conversation in Conversation.all
        where arguments.count == 2 || arguments.dropFirst(2).contains(conversation.name) {
            let real = try (1...conversation.runs).map { _ in try link.hold(conversation) }
            let simulated = (1...conversation.runs).map { conversation.simulated(seed: UInt64($0)) }
            let comparison = Comparison(of: conversation, real: real, simulated: simulated)
            print(comparison)
            isSame = isSame && comparison.isSame
        }
        if !isSame { exit(1) }
    }
}
