import Testing

@testable import Raft

/// Members in memory, whose messages arrive when a test delivers them. Their records are on their disks at once.
private struct Members {
    var members: [String: Member] = [:]
    /// The messages under way.
    var mail: [(message: Message, from: String, to: String)] = []
    var applied: [String: [Entry]] = [:]
    var served: [String: [Int]] = [:]
    var refused: [String: [Int]] = [:]

    init(_ names: String..., batch: Int = 64) {
        for name in names { members[name] = Member(name, among: names, batch: batch) }
    }

    subscript(name: String) -> Member { members[name]! }

    mutating func update(_ name: String, _ input: (inout Member) -> Void) {
        input(&members[name]!)
        for action in members[name]!.takeEffects().actions {
            switch action {
            case .send(let message, let other): mail.append((message, name, other))
            case .apply(let entry, let index):
                applied[name, default: []].append(entry)
                #expect(applied[name]!.count == index)
            case .serve(let read): served[name, default: []].append(read)
            case .refuse(let read): refused[name, default: []].append(read)
            }
        }
    }

    /// Delivers all messages among some members, and loses the others.
    ///
    /// - Parameter isEnough: returns `true` to lose all further messages.
    mutating func deliver(among names: String..., until isEnough: (Members) -> Bool = { _ in false }) {
        for _ in 0..<1000 where !mail.isEmpty {
            if isEnough(self) { return mail.removeAll() }
            let (message, sender, receiver) = mail.removeFirst()
            guard names.contains(sender), names.contains(receiver) else { continue }
            update(receiver) { $0.receive(message, from: sender) }
        }
        #expect(mail.isEmpty, "the members do not come to rest")
    }

    mutating func set(_ value: String, at name: String) {
        update(name) {
            let index = $0.propose(.set(key: "x", value: value))
            #expect(index != nil)
        }
    }

    mutating func read(_ number: Int, at name: String) {
        update(name) {
            let isTaken = $0.read(number)
            #expect(isTaken)
        }
    }

    /// Starts a member anew, with its term, its vote and its log.
    mutating func restart(_ name: String) {
        let old = members[name]!
        members[name] = Member(name, among: members.keys.sorted(), old.stored, batch: old.batch)
        applied[name] = nil
    }

    func values(of name: String) -> [String] {
        (applied[name] ?? []).compactMap { if case .set(_, let value) = $0.command { value } else { nil } }
    }
}

@Suite("A member of a cluster")
struct MemberTests {
    @Test("a member with the votes of a majority leads, and its committed entries are applied everywhere")
    func election() {
        var all = Members("a", "b", "c")
        all.update("a") { $0.timeOut() }
        #expect(!all["a"].isLeader)
        all.deliver(among: "a", "b", "c")
        #expect(all["a"].isLeader && all["b"].leader == "a" && all["c"].term == 1)
        all.set("1", at: "a")
        all.deliver(among: "a", "b", "c")
        all.update("a") { $0.beat() }
        all.deliver(among: "a", "b", "c")
        for name in ["a", "b", "c"] { #expect(all.values(of: name) == ["1"]) }
    }

    @Test("a member alone leads and commits by itself")
    func alone() {
        var all = Members("a")
        all.update("a") { $0.timeOut() }
        all.set("1", at: "a")
        all.read(1, at: "a")
        #expect(all.values(of: "a") == ["1"] && all.served["a"] == [1])
    }

    @Test("a member votes once in a term, also after a new start")
    func oneVote() {
        var all = Members("a", "b", "c")
        all.update("a") { $0.timeOut() }
        all.deliver(among: "a", "b")
        all.restart("b")
        all.update("c") { $0.timeOut() }
        all.deliver(among: "b", "c")
        #expect(all["a"].isLeader && !all["c"].isLeader && all["c"].term == 1)
    }

    @Test("a vote and an entry come with the records that must be stored before")
    func records() {
        var member = Member("b", among: ["a", "b", "c"])
        let entry = Entry(term: 3, command: .nothing)
        member.receive(Message(term: 3, body: .requestVote(lastIndex: 0, lastTerm: 0)), from: "a")
        #expect(member.takeEffects().records == [.term(3, vote: nil), .term(3, vote: "a")])
        let append = Message.Body.append(previous: 0, previousTerm: 0, entries: [entry], commit: 0, round: 1)
        member.receive(Message(term: 3, body: append), from: "a")
        let effects = member.takeEffects()
        #expect(effects.records == [.entry(entry, at: 1)] && effects.restartsTimeout)
        #expect(effects.actions == [.send(Message(term: 3, body: .appended(upTo: 1, round: 1)), to: "a")])
    }

    @Test("a candidate without a committed entry is not elected")
    func upToDate() {
        var all = Members("a", "b", "c")
        all.update("a") { $0.timeOut() }
        all.deliver(among: "a", "b")
        all.update("c") { $0.timeOut() }
        all.update("c") { $0.timeOut() }
        all.deliver(among: "b", "c")
        #expect(!all["c"].isLeader && all["b"].term == 2)
    }

    @Test("the next leader's entries replace the entries of a deposed leader")
    func conflict() {
        var all = Members("a", "b", "c")
        all.update("a") { $0.timeOut() }
        all.deliver(among: "a", "b", "c")
        for value in ["1", "2", "3"] { all.set(value, at: "a") }
        all.deliver(among: "a")
        all.update("b") { $0.timeOut() }
        all.deliver(among: "b", "c")
        all.set("4", at: "b")
        all.deliver(among: "b", "c")
        for _ in 0..<2 {
            all.update("b") { $0.beat() }
            all.deliver(among: "a", "b", "c")
        }
        #expect(!all["a"].isLeader && all["a"].log.entries == all["b"].log.entries)
        for name in ["a", "b", "c"] { #expect(all.values(of: name) == ["4"]) }
    }

    @Test("an entry of an earlier term is committed only together with one of the leader's (figure 8)")
    func figure8() {
        var all = Members("a", "b", "c", batch: 1)
        all.update("a") { $0.timeOut() }
        all.deliver(among: "a", "b", "c")
        all.update("a") { $0.beat() }
        all.deliver(among: "a", "b", "c")
        // An entry that only one member has, and another one in its place, of a later term, that only another member
        // has.
        all.set("1", at: "a")
        all.deliver(among: "a")
        all.update("c") { $0.timeOut() }
        all.deliver(among: "b", "c") { $0["c"].isLeader }
        // The first leads again. It has sent its old entry to a majority, and crashes before it has sent its new one.
        for _ in 1...2 { all.update("a") { $0.timeOut() } }
        all.deliver(among: "a", "b") { $0["a"].leadership?.followers["b"]!.matched == 2 }
        #expect(all["a"].term == 3 && all["b"].log.term(at: 2) == 1 && all["a"].commit == 1)
        for _ in 1...2 { all.update("c") { $0.timeOut() } }
        all.deliver(among: "b", "c")
        #expect(all["c"].isLeader && all["b"].log.term(at: 2) == 2 && all["c"].commit == 3)
    }

    @Test("a read is served after a majority has confirmed the leader, and refused if it has been deposed")
    func reads() {
        var all = Members("a", "b", "c")
        all.update("a") { $0.timeOut() }
        all.deliver(among: "a", "b", "c")
        all.read(1, at: "a")
        #expect(all.served["a"] == nil)
        all.deliver(among: "a", "b")
        #expect(all.served["a"] == [1])
        all.read(2, at: "a")
        all.deliver(among: "a")
        all.update("b") { $0.timeOut() }
        all.deliver(among: "a", "b", "c")
        #expect(all.served["a"] == [1] && all.refused["a"] == [2])
        all.update("a") {
            let isTaken = $0.read(3)
            #expect(!isTaken)
        }
    }

    @Test(
        "a message is the same after it has been a line",
        arguments: [
            Message(term: 1, body: .requestVote(lastIndex: 2, lastTerm: 3)),
            Message(term: 4, body: .vote(isGranted: true)),
            Message(term: 4, body: .vote(isGranted: false)), Message(term: 5, body: .appended(upTo: 6, round: 7)),
            Message(term: 5, body: .mismatch(last: 6, round: 7)),
            Message(
                term: 8,
                body: .append(
                    previous: 1, previousTerm: 1,
                    entries: [Entry(term: 7, command: .nothing), Entry(term: 8, command: .set(key: "k", value: "ä"))],
                    commit: 1, round: 9)),
        ])
    func words(message: Message) throws {
        #expect(try Message(message.words) == message)
        #expect(throws: Words.Malformed.self) { try Message(message.words + " more") }
        #expect(throws: Words.Malformed.self) { try Message(String(message.words.dropLast(4))) }
    }
}
