import RunLoopHosts
import RunLoopKit
import RunLoopSimulation
import RunLoopUnix

extension Program {
    /// Hosts whose power fails, and whose links delay.
    static let crashes = [renamedUnsynced, votedTwice, replayedAfterCheckpoint, boughtTwice, alternatingBit]

    /// Fails if the power fails between a rename and the sync of the renamed file, and the disk has the new name and
    /// not all of the bytes.
    private static let renamedUnsynced = Program(
        name: "renamed-unsynced",
        bug: "New settings are renamed over the old ones, and synced in the background later.", hasNetwork: true
    ) { simulation, isMended in
        let host = SimulatedNetwork(simulation).addHost("server") { loop in
            let disk = Disk.current
            var version: UInt8 = 0
            let saving = Timer(timeInterval: .milliseconds(50), repeats: true) { timer in
                version += 1
                if version == 40 { timer.invalidate() }
                do {
                    try? disk.remove("/data/new")
                    let file = try disk.open("/data/new", .readingAndWritingNew)
                    try file.write(Array(repeating: version, count: 8), at: 0)
                    if isMended { try file.sync() }
                    try disk.rename("/data/new", to: "/data/settings")
                    if isMended { return try disk.syncDirectory(of: "/data/settings") }
                    loop.perform(afterDelay: .milliseconds(2)) {
                        try? file.sync()
                        try? disk.syncDirectory(of: "/data/settings")
                    }
                } catch {
                    timer.invalidate()
                }
            }
            loop.add(saving, forMode: .default)
        }
        host.disk.install(Array(repeating: 0, count: 8), at: "/data/settings")
        simulation.mayHappen("the power fails") { host.crash() }
        simulation.advance(by: .seconds(3))
        let settings = host.disk.contents(of: "/data/settings") ?? []
        try check(settings.count == 8 && Set(settings).count == 1, "the settings are \(settings)")
    }

    /// Fails if two candidates ask in the same moment, each has the vote of one, and the third voter votes for one of
    /// them, loses power before its vote is on the disk, and votes for the other one.
    private static let votedTwice = Program(
        name: "voted-twice", bug: "A voter sends its vote, and writes down a little later for whom it has voted.",
        hasNetwork: true
    ) { simulation, isMended in
        let network = SimulatedNetwork(simulation)
        var addresses: [Endpoint] = []
        for number in 1...3 {
            let address = try Endpoint("10.1.0.\(number)", port: 7)
            addresses.append(address)
            let voter = network.addHost("voter \(number)", addresses: ["10.1.0.\(number)"]) { loop in
                let file = try Disk.current.open("/data/votes", .readingAndWritingLocked)
                // The candidate for whom the voter has voted, by term.
                var votes = try file.contents()
                try serve(at: address, on: loop) { words in
                    let (term, candidate) = (Int(words[1])!, UInt8(words[2])!)
                    while votes.count <= term { votes.append(0) }
                    guard votes[term] == 0 else { return votes[term] == candidate ? "yes" : "no" }
                    votes[term] = candidate
                    @Sendable func keep() throws {
                        try file.write([candidate], at: term)
                        try file.sync()
                    }
                    if isMended { try keep() } else { loop.perform(afterDelay: .milliseconds(3)) { try? keep() } }
                    return "yes"
                }
            }
            voter.disk.install([], at: "/data/votes")
            simulation.mayHappen("voter \(number) loses its power") {
                voter.crash()
                voter.start()
            }
        }
        let loop = simulation.loop
        var leaders: [[Int]] = Array(repeating: [], count: 9)
        for candidate in 1...2 {
            loop.task(name: "candidate \(candidate)") {
                for term in 1...8 {
                    let pauses: [Duration] = [.milliseconds(30), .milliseconds(1), .milliseconds(10)]
                    let pause =
                        candidate == 1 ? .zero : simulation.choice("how much later candidate 2 asks", of: pauses)
                    try await loop.clock.sleep(
                        until: RunLoop.Instant(nanoseconds: 0) + .milliseconds(500) * term + pause)
                    var votes = 0
                    for address in candidate == 1 ? addresses : addresses.reversed() {
                        let line = "vote \(term) \(candidate)"
                        let vote = try? await ask(line, at: address, on: loop, within: .milliseconds(100))
                        if vote == "yes" { votes += 1 }
                    }
                    if votes >= 2 { leaders[term].append(candidate) }
                }
            }
        }
        simulation.advance(by: .seconds(6))
        let term = leaders.firstIndex { $0.count > 1 }
        try check(term == nil, "both candidates lead in term \(term ?? 0)")
    }

    /// Fails if the power fails between a checkpoint and the end of the records that it contains; there are three such
    /// moments in a thousand records.
    private static let replayedAfterCheckpoint = Program(
        name: "replayed-after-checkpoint",
        bug: "A start adds up the checkpoint and all records of the log, which is cut a moment after the checkpoint.",
        hasNetwork: true
    ) { simulation, isMended in
        // The sum of all records that were added, and the sum with which the store has begun.
        let (added, begun) = (Shared(0), Shared(0))
        let store = SimulatedNetwork(simulation).addHost("store") { loop in
            let disk = Disk.current
            let log = try disk.open("/data/log", .readingAndWritingLocked)
            let checkpoint = String(decoding: try disk.open("/data/checkpoint", .reading).contents(), as: UTF8.self)
            let numbers = checkpoint.split(separator: " ").map { Int($0)! }
            var (sum, first) = (numbers[0], numbers[1])
            // A record has its number, in two bytes, and its value.
            let records = try log.contents()
            var length = records.count / 3
            for place in 0..<length {
                if isMended && Int(records[3 * place]) << 8 | Int(records[3 * place + 1]) != first { continue }
                sum += Int(records[3 * place + 2])
                first += 1
            }
            begun.value = sum
            func write() throws {
                try log.write([UInt8(first >> 8), UInt8(first & 255), 1], at: 3 * length)
                try log.sync()
                (sum, first, length) = (sum + 1, first + 1, length + 1)
                added.value += 1
                guard first.isMultiple(of: 300) else { return }
                try? disk.remove("/data/new")
                let file = try disk.open("/data/new", .readingAndWritingNew)
                try file.write(Array("\(sum) \(first)".utf8), at: 0)
                try file.sync()
                try disk.rename("/data/new", to: "/data/checkpoint")
                try disk.syncDirectory(of: "/data/new")
                loop.perform {
                    try? log.truncate(to: 0)
                    try? log.sync()
                    length = 0
                }
            }
            let writing = Timer(timeInterval: .milliseconds(10), repeats: true) { timer in
                do { try write() } catch { timer.invalidate() }
            }
            loop.add(writing, forMode: .default)
        }
        store.disk.install(Array("0 0".utf8), at: "/data/checkpoint")
        store.disk.install([], at: "/data/log")
        let expected = Shared<Int?>(nil)
        simulation.mayHappen("the power fails") {
            expected.value = added.value
            store.crash()
            store.start()
        }
        simulation.advance(by: .seconds(10))
        if let sum = expected.value {
            // A record may be on the disk and not counted yet.
            try check(
                (sum...sum + 1).contains(begun.value),
                "\(sum) records were added, and \(begun.value) are there after the crash")
        }
    }

    /// Fails if the shop is slow three times, and the client buys elsewhere while the shop sells nevertheless.
    private static let boughtTwice = Program(
        name: "bought-twice",
        bug: "A client whose time is over buys elsewhere, while its agent's orders are under way.", hasNetwork: true
    ) { simulation, isMended in
        let network = SimulatedNetwork(simulation)
        let (agent, shop) = (try Endpoint("10.1.0.1", port: 7), try Endpoint("10.1.0.2", port: 7))
        let sold = Shared(Set<Substring>())
        network.addHost("shop", addresses: ["10.1.0.2"]) { loop in
            var withdrawn = Set<Substring>()
            try serve(at: shop, on: loop) { words in
                let order = words[1]
                if words[0] == "withdraw" {
                    withdrawn.insert(order)
                    return sold.value.contains(order) ? "sold" : "withdrawn"
                }
                let times: [Duration] = [.milliseconds(20), .milliseconds(600)]
                try await loop.clock.sleep(for: simulation.choice("how long the shop takes", of: times))
                if withdrawn.contains(order) { return "withdrawn" }
                sold.value.insert(order)
                return "sold"
            }
        }
        network.addHost("agent", addresses: ["10.1.0.1"]) { loop in
            try serve(at: agent, on: loop) { words in
                // An order has a name, so that the shop does not sell twice.
                for _ in 1...3 {
                    let line = words.joined(separator: " ")
                    if let answer = try? await ask(line, at: shop, on: loop, within: .milliseconds(400)) {
                        return answer
                    }
                }
                return "sorry"
            }
        }
        let loop = simulation.loop
        var elsewhere: Set<Substring> = []
        loop.task(name: "client") {
            for number in 1...10 {
                let order = Substring("\(number)")
                if (try? await ask("buy \(order)", at: agent, on: loop)) == "sold" { continue }
                var isSold = false
                if isMended {
                    var answer: String?
                    while answer != "sold" && answer != "withdrawn" {
                        answer = try? await ask("withdraw \(order)", at: agent, on: loop)
                        try await loop.clock.sleep(for: .milliseconds(10))
                    }
                    isSold = answer == "sold"
                }
                if !isSold { elsewhere.insert(order) }
            }
        }
        simulation.advance(by: .seconds(60))
        let twice = sold.value.intersection(elsewhere).sorted()
        try check(twice.isEmpty, "orders \(twice) were bought twice")
    }

    /// Fails if a message is sent twice, the second one is acknowledged, and the first one arrives after the next
    /// message, when its bit is expected again.
    private static let alternatingBit = Program(
        name: "alternating-bit",
        bug: "Messages are numbered with a bit, on a network where one may overtake the next but one.", hasNetwork: true
    ) { simulation, isMended in
        let network = SimulatedNetwork(simulation)
        network.link.jitter = .milliseconds(10)
        network.link.lossRate = 0.05
        network.link.duplicationRate = 0.05
        let address = try Endpoint("10.1.0.1", port: 7)
        let received = Shared<[UInt8]>([])
        func number(_ message: Int) -> UInt8 { UInt8(isMended ? message : message % 2) }
        network.addHost("receiver", addresses: ["10.1.0.1"]) { loop in
            var expected = 0
            _ = try DatagramSocket(address: address, on: loop) { socket, bytes, header in
                let isExpected = bytes[0] == UInt8(isMended ? expected : expected % 2)
                if isExpected {
                    received.value.append(bytes[1])
                    expected += 1
                }
                socket.send([bytes[0]], to: header.sender)
            }
        }
        let loop = simulation.loop
        var (present, resending) = (0, nil as DelayedCall?)
        let socket = try DatagramSocket(peer: address, on: loop) { socket, bytes, _ in
            guard bytes[0] == number(present) else { return }
            present += 1
            send(socket)
        }
        func send(_ socket: DatagramSocket) {
            resending?.cancel()
            guard present < 40 else { return }
            socket.send([number(present), UInt8(present)])
            resending = loop.perform(afterDelay: .milliseconds(40)) { send(socket) }
        }
        send(socket)
        simulation.advance(by: .seconds(30))
        let values = received.value
        try check(values == Array(0..<UInt8(values.count)), "the messages came as \(values)")
    }
}
