import Testing

@testable import Raft

@Suite("The check of a cluster")
struct ClusterCheckTests {
    private var members: [String: Member] = [:]
    private var check = ClusterCheck()

    init() {
        for name in ["a", "b", "c"] {
            members[name] = Member(name, among: ["a", "b", "c"])
            check.memberBegins(name, Member.Stored())
        }
    }

    /// Applies an input to a member, and returns its messages to another one.
    private mutating func update(_ name: String, for other: String, _ input: (inout Member) -> Void) -> [Message] {
        input(&members[name]!)
        let effects = members[name]!.takeEffects()
        check.memberSteps(members[name]!, effects)
        return effects.actions.compactMap {
            if case .send(let message, other) = $0 { message } else { nil }
        }
    }

    @Test("a leader whose votes come late does not have the entries of a later term")
    mutating func lateLeader() {
        let requests = update("a", for: "b") { $0.timeOut() }
        let votes = requests.flatMap { request in update("b", for: "a") { $0.receive(request, from: "a") } }
        _ = update("c", for: "b") { $0.timeOut() }
        var mail = update("c", for: "b") { $0.timeOut() }
        while !mail.isEmpty {
            let answers = mail.flatMap { message in update("b", for: "c") { $0.receive(message, from: "c") } }
            mail = answers.flatMap { message in update("c", for: "b") { $0.receive(message, from: "b") } }
        }
        #expect(members["c"]!.commit == 1)
        for vote in votes { _ = update("a", for: "b") { $0.receive(vote, from: "b") } }
        #expect(members["a"]!.isLeader && check.failures.isEmpty, "\(check.failures)")
    }
}
