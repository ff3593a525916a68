import Logging
import RunLoopKit
import RunLoopUnix

/// A member of the cluster with its surroundings: the timers, the disk, the other members, the registers, and the
/// requests of clients. Used on the node's loop.
final class Node {
    struct Settings {
        /// The shortest time without a sign of a leader after which a member becomes a candidate; the longest is twice
        /// that.
        var timeout = Duration.milliseconds(300)
        /// The interval of a leader's signs of life.
        var interval: Duration { timeout / 3 }
    }

    /// Called with each answer to a request of another member.
    var answerHandler: (Message, _ name: String) -> Void = { _, _ in }
    /// Called with the effects of each input before they are carried out, for an observer such as a test.
    var effectsHandler: (Effects) -> Void = { _ in }
    /// Called with each message before it is sent, for an observer.
    var messageHandler: (Message, _ name: String) -> Void = { _, _ in }
    private(set) var member: Member
    private(set) var registers = Registers()

    private let addresses: [Address]
    private let settings: Settings
    private let store: Store
    private let loop: RunLoop
    private let log: Logger
    private let peers: [String: Peer]
    private var random: RunLoop.RandomNumbers
    /// The next election, which a sign of a leader postpones.
    private var election: DelayedCall?
    private var beat: Timer?
    /// The requests that wait for an entry to be applied, by its index. Entries of several terms may have had the
    /// index: one that was replaced here may still exist on other members, and may come back.
    private var changes: [Int: [(term: Int, answer: (Answer) -> Void)]] = [:]
    /// The requests that wait until the member is known to lead.
    private var reads: [Int: (key: String, answer: (Answer) -> Void)] = [:]
    private var readCount = 0

    init(
        _ member: Member, at addresses: [Address], _ settings: Settings, _ store: Store, on loop: RunLoop,
        _ log: Logger
    ) {
        (self.member, self.addresses, self.settings) = (member, addresses, settings)
        (self.store, self.loop, self.log) = (store, loop, log)
        random = loop.randomNumbers
        let others = addresses.filter { $0.name != member.name }
        peers = Dictionary(
            uniqueKeysWithValues: others.map {
                ($0.name, Peer(member.name, to: $0, on: loop, longestWait: settings.timeout * 2, log))
            })
        store.actionHandler = { [unowned self] in perform($0) }
        for (name, peer) in peers {
            peer.answerHandler = { [unowned self] answer in
                update { $0.receive(answer, from: name) }
            }
        }
    }

    func start() {
        for name in member.others { peers[name]!.connect() }
        let interval = settings.interval
        let beat = Timer(fire: loop.now + interval, interval: interval, repeats: true) { [unowned self] _ in
            update { $0.beat() }
        }
        loop.add(beat, forMode: .common)
        self.beat = beat
        awaitLeader()
    }

    /// Ends all activity. Waiting requests get no answer.
    func stop() {
        election?.cancel()
        beat?.invalidate()
        for peer in peers.values { peer.close() }
        store.close()
    }

    // MARK: Inputs

    /// Returns the name of the member that connects with a line; `nil` for any other line.
    func name(inGreeting line: String) -> String? {
        guard line.hasPrefix(Peer.greeting) else { return nil }
        let name = String(line.dropFirst(Peer.greeting.count))
        return member.others.contains(name) ? name : nil
    }

    /// Takes a request from another member.
    func receive(_ request: Message, from name: String) {
        update { $0.receive(request, from: name) }
    }

    /// Performs a client's request.
    ///
    /// - Parameter answer: called once, or never if this member stops before.
    func perform(_ request: Request, _ answer: @escaping (Answer) -> Void) {
        var isTaken = false
        switch request {
        case .get(let key):
            readCount += 1
            reads[readCount] = (key, answer)
            update { isTaken = $0.read(readCount) }
            if !isTaken { reads[readCount] = nil }
        case .set(let key, let value):
            update { member in
                guard let index = member.propose(.set(key: key, value: value)) else { return }
                changes[index, default: []].append((member.term, answer))
                isTaken = true
            }
        }
        if !isTaken { answer(.ask(leader)) }
    }

    private var leader: Address? { addresses.first { $0.name == member.leader } }

    private func update(_ input: (inout Member) -> Void) {
        let (wasLeader, term) = (member.isLeader, member.term)
        input(&member)
        let effects = member.takeEffects()
        effectsHandler(effects)
        if member.isLeader != wasLeader {
            log.notice("\(member.isLeader ? "leader" : "no longer leader") of term \(wasLeader ? term : member.term)")
        }
        if effects.restartsTimeout || member.isLeader != wasLeader { awaitLeader() }
        store.carryOut(effects)
    }

    /// Restarts the time until the next election.
    private func awaitLeader() {
        election?.cancel()
        guard !member.isLeader else { return }
        let delay = settings.timeout * Double.random(in: 1...2, using: &random)
        election = loop.perform(afterDelay: delay, inModes: .common) { [unowned self] in update { $0.timeOut() } }
    }

    // MARK: Actions

    private func perform(_ action: Action) {
        switch action {
        case .send(let message, let name):
            messageHandler(message, name)
            if message.isRequest { peers[name]?.send(message) } else { answerHandler(message, name) }
        case .apply(let entry, let index):
            registers.apply(entry.command)
            for change in changes.removeValue(forKey: index) ?? [] {
                change.answer(change.term == entry.term ? .done : .ask(leader))
            }
        case .serve(let number):
            guard let read = reads.removeValue(forKey: number) else { return }
            read.answer(.value(registers[read.key]))
        case .refuse(let number): reads.removeValue(forKey: number)?.answer(.ask(leader))
        }
    }
}
