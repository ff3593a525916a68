@testable import Raft

/// The properties of section 5 of the paper, for all members together. Each member is looked at after each of its steps.
struct ClusterCheck {
    private(set) var failures: [String] = []
    /// The last known state of each member; a crash leaves it.
    private var members: [String: Member] = [:]
    private var leaders: [Int: String] = [:]
    private var committed: [Entry] = []
    /// The number of committed entries of each member that have been compared.
    private var compared: [String: Int] = [:]

    mutating func fail(_ text: String) {
        if failures.count < 10 { failures.append(text) }
    }

    /// The leader with the latest term.
    var leader: String? { members.values.filter(\.isLeader).max { $0.term < $1.term }?.name }

    mutating func memberBegins(_ name: String) {
        (members[name], compared[name]) = (nil, 0)
    }

    mutating func look(at member: Member) {
        members[member.name] = member
        if member.isLeader {
            let first = leaders[member.term, default: member.name]
            leaders[member.term] = first
            if first != member.name { fail("\(first) and \(member.name) have led in term \(member.term)") }
        }
        for index in compared[member.name, default: 0]..<max(member.commit, compared[member.name, default: 0]) {
            let entry = member.log[index + 1]
            if index == committed.count { committed.append(entry) }
            if entry != committed[index] {
                fail("\(member.name) has committed \(entry) at \(index + 1), where \(committed[index]) was committed")
            }
        }
        compared[member.name] = max(member.commit, compared[member.name, default: 0])
    }

    /// Two logs that have an entry of one index and term have the same entries before it.
    mutating func compareLogs() {
        let members = members.values.sorted { $0.name < $1.name }
        for (number, one) in members.enumerated() {
            for other in members[(number + 1)...] {
                let pairs = zip(one.log.entries, other.log.entries)
                guard let last = Array(pairs).lastIndex(where: { $0.term == $1.term }) else { continue }
                if one.log.entries[...last] != other.log.entries[...last] {
                    fail(
                        "the logs of \(one.name) and \(other.name) have the same term at \(last + 1), but differ before"
                    )
                }
            }
        }
    }
}
