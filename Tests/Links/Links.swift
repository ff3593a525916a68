import Glibc
import RunLoopKit
import RunLoopUnix

/// Holds conversations over a real link and over a simulated one, and compares them.
///
///     Links CLIENT-NAMESPACE SERVER-NAMESPACE   compares all, and ends with 1 if one differs
///     Links client NAME, Links server NAME      takes one side of a conversation
///
/// Ends with 2 if it cannot compare.
@main
enum Links {
    static func main() {
        do {
            try run(CommandLine.arguments.dropFirst().map(\.self))
        } catch {
            print("Nothing was compared: \(error).")
            exit(2)
        }
    }

    private static func run(_ arguments: [String]) throws {
        guard arguments.count == 2 else { throw SystemError("read the namespaces' names", errno: EINVAL) }
        if let side = Side.Name(rawValue: arguments[0]), let conversation = Conversation.named(arguments[1]) {
            return try Participant.takePart(as: side, in: conversation)
        }
        let link = try RealLink(
            namespaces: [.client: arguments[0], .server: arguments[1]], on: RunLoop.current)
        var isSame = true
        for conversation in Conversation.all {
            let real = try (1...conversation.runs).map { _ in try link.hold(conversation) }
            let simulated = (1...conversation.runs).map { conversation.simulated(seed: UInt64($0)) }
            let comparison = Comparison(of: conversation, real: real, simulated: simulated)
            print(comparison)
            isSame = isSame && comparison.isSame
        }
        if !isSame { exit(1) }
    }
}
