import RunLoopExploration
import RunLoopHosts
import RunLoopKit
import RunLoopSimulation
import RunLoopUnix

extension Program {
    /// Stores on hosts, with their histories.
    static let replicas = [refusedThoughDone, backInTime, lostSegment, replacedPrimary]

    /// Fails if the link is cut while the answer to a change is under way, so that the client sends the change again.
    private static let refusedThoughDone = Program(
        name: "refused-though-done",
        bug: "A change that depends on the present value is sent again, and the store refuses it for its own effect.",
        hasNetwork: true
    ) { simulation, isMended in
        let history = History(of: RegisterModel(), in: simulation)
        let network = SimulatedNetwork(simulation)
        let address = try Endpoint("10.1.0.1", port: 7)
        let store = network.addHost("store", addresses: ["10.1.0.1"]) { loop in
            var value = 0
            var answers: [Substring: String] = [:]
            try serve(at: address, on: loop) { words in
                guard words[0] == "set" else { return "\(value)" }
                if isMended, let answer = answers[words[3]] { return answer }
                let isExpected = value == Int(words[1])
                if isExpected { value = Int(words[2])! }
                let answer = isExpected ? "done" : "refused"
                answers[words[3]] = answer
                return answer
            }
        }
        simulation.mayHappen("the link is cut") { network.cut(between: network.test, and: store) }
        let loop = simulation.loop
        let healing = Timer(timeInterval: .seconds(3), repeats: true) { _ in network.heal() }
        loop.add(healing, forMode: .default)
        /// Asks until there is an answer.
        func call(_ line: String) async throws -> String {
            while true {
                if let answer = try? await ask(line, at: address, on: loop) { return answer }
                try await loop.clock.sleep(for: .milliseconds(500))
            }
        }
        loop.task(name: "client") {
            for number in 0..<8 {
                try await history.record(.set(number + 1, from: number), by: "client") {
                    try await call("set \(number) \(number + 1) \(number)") == "done" ? .done : .refused
                }
                try await history.record(.read, by: "client") { .value(Int(try await call("read"))!) }
                try await loop.clock.sleep(for: .milliseconds(200))
            }
        }
        simulation.advance(by: .seconds(20))
        try history.check()
    }

    /// Fails if a reader finds a new value at the primary while it is under way to the replica, and then reads there.
    private static let backInTime = Program(
        name: "back-in-time",
        bug: "Readers go to a primary, which is the first to know a new value, and to its replica.", hasNetwork: true
    ) { simulation, isMended in
        let history = History(of: RegisterModel(), in: simulation)
        let network = SimulatedNetwork(simulation)
        network.link.jitter = .milliseconds(4)
        let addresses = [try Endpoint("10.1.0.1", port: 7), try Endpoint("10.1.0.2", port: 7)]
        for place in addresses.indices {
            network.addHost(["primary", "replica"][place], addresses: ["10.1.0.\(place + 1)"]) { loop in
                var value = 0
                try serve(at: addresses[place], on: loop) { words in
                    guard words[0] == "write" else { return "\(value)" }
                    value = Int(words[1])!
                    if place == 0 { _ = try await ask("write \(value)", at: addresses[1], on: loop) }
                    return "done"
                }
            }
        }
        let loop = simulation.loop
        loop.task(name: "writer") {
            for value in 1...4 {
                try await loop.clock.sleep(for: .milliseconds(100))
                try await history.record(.write(value), by: "writer") {
                    _ = try await ask("write \(value)", at: addresses[0], on: loop)
                    return .done
                }
            }
        }
        loop.task(name: "reader") {
            var seen = 0
            for number in 0..<12 {
                if number.isMultiple(of: 2) { try await loop.clock.sleep(for: .milliseconds(52)) }
                let read = try await history.record(.read, by: "reader") {
                    while true {
                        let value = Int(try await ask("read", at: addresses[number % 2], on: loop))!
                        // A value is the number of its version.
                        if !isMended || value >= seen { return .value(value) }
                        try await loop.clock.sleep(for: .milliseconds(5))
                    }
                }
                if case .value(let value) = read { seen = value }
            }
        }
        simulation.advance(by: .seconds(5))
        try history.check()
    }

    /// Fails if the power fails when the log has begun another file, and that file's name was not on the disk yet.
    private static let lostSegment = Program(
        name: "lost-segment", bug: "A log that begins another file syncs each record in it, and never its directory.",
        hasNetwork: true
    ) { simulation, isMended in
        let history = History(of: LogModel(), in: simulation)
        let network = SimulatedNetwork(simulation)
        let address = try Endpoint("10.1.0.1", port: 7)
        let store = network.addHost("store", addresses: ["10.1.0.1"]) { loop in
            let disk = Disk.current
            func path(_ number: Int) -> String { "/data/log.\(number)" }
            var records: [UInt8] = []
            var files = 0
            while disk.exists(path(files)) {
                // A record that a crash has torn is a zero.
                records += try disk.open(path(files), .reading).contents().filter { $0 != 0 }
                files += 1
            }
            // A start begins another file, and so does every fourth record.
            var (file, length) = (nil as File?, 0)
            try serve(at: address, on: loop) { words in
                guard words[0] == "append" else { return records.map { "\($0)" }.joined(separator: " ") }
                if file == nil || length == 4 {
                    (file, length) = (try disk.open(path(files), .readingAndWritingNew), 0)
                    files += 1
                    if isMended { try disk.syncDirectory(of: path(files)) }
                }
                let record = UInt8(words[1])!
                try file!.write([record], at: length)
                try file!.sync()
                length += 1
                records.append(record)
                return "done"
            }
        }
        simulation.mayHappen("the power fails") {
            store.crash()
            store.start()
        }
        let loop = simulation.loop
        loop.task(name: "client") {
            for record in 1...20 {
                try await loop.clock.sleep(for: .milliseconds(100))
                _ = try? await history.record(.append(record), by: "client") {
                    _ = try await ask("append \(record)", at: address, on: loop)
                    return []
                }
            }
            while true {
                let read = try? await history.record(.read, by: "client") {
                    try await ask("read", at: address, on: loop).split(separator: " ").map { Int($0)! }
                }
                if read != nil { return }
                try await loop.clock.sleep(for: .milliseconds(100))
            }
        }
        simulation.advance(by: .seconds(30))
        try history.check()
    }

    /// Fails if the primary is cut off from its backup until that takes over, one client writes there, and another one
    /// reads at the former primary.
    private static let replacedPrimary = Program(
        name: "replaced-primary", bug: "A primary answers readers until it learns that its backup has taken over.",
        hasNetwork: true
    ) { simulation, isMended in
        let history = History(of: RegisterModel(), in: simulation)
        let network = SimulatedNetwork(simulation)
        let primaryAddress = try Endpoint("10.1.0.1", port: 7)
        let backupAddress = try Endpoint("10.1.0.2", port: 7)
        let primary = network.addHost("primary", addresses: ["10.1.0.1"]) { loop in
            var (value, isReplaced, leaseEnd) = (0, false, loop.now)
            /// Sends the backup a line, whose answer allows the primary to serve for another second.
            func tell(_ line: String) async throws -> Bool {
                let begin = loop.now
                guard try await ask(line, at: backupAddress, on: loop, within: .milliseconds(300)) == "heard" else {
                    isReplaced = true
                    return false
                }
                leaseEnd = max(leaseEnd, begin + .seconds(1))
                return true
            }
            try serve(at: primaryAddress, on: loop) { words in
                guard !isReplaced, !isMended || loop.now < leaseEnd else { return "no" }
                if words[0] == "read" { return "\(value)" }
                guard try await tell("copy \(words[1])") else { return "no" }
                value = Int(words[1])!
                return "done"
            }
            loop.task {
                while !isReplaced {
                    _ = try? await tell("alive")
                    try await loop.clock.sleep(for: .milliseconds(200))
                }
            }
        }
        let backup = network.addHost("backup", addresses: ["10.1.0.2"]) { loop in
            var (value, heard, isPrimary) = (0, loop.now, false)
            try serve(at: backupAddress, on: loop) { words in
                switch words[0] {
                case "alive", "copy":
                    guard !isPrimary else { return "replaced" }
                    heard = loop.now
                    if words[0] == "copy" { value = Int(words[1])! }
                    return "heard"
                case "write" where isPrimary:
                    value = Int(words[1])!
                    return "done"
                case "read" where isPrimary: return "\(value)"
                default: return "no"
                }
            }
            let look = Timer(timeInterval: .milliseconds(100), repeats: true) { _ in
                if loop.now - heard > .milliseconds(1_500) { isPrimary = true }
            }
            loop.add(look, forMode: .default)
        }
        simulation.mayHappen("the link between the two is cut") { network.cut(between: primary, and: backup) }
        let loop = simulation.loop
        loop.perform(afterDelay: .seconds(6)) { network.heal() }
        loop.task(name: "writer") {
            for value in 1...25 {
                for address in [primaryAddress, backupAddress] {
                    let written = try? await history.record(.write(value), by: "writer", refusedIf: { $0 is Refusal }) {
                        let answer = try await ask("write \(value)", at: address, on: loop)
                        if answer == "no" { throw Refusal() }
                        return .done
                    }
                    if written != nil { break }
                }
                try await loop.clock.sleep(for: .milliseconds(310))
            }
        }
        loop.task(name: "reader") {
            for _ in 1...25 {
                for address in [primaryAddress, backupAddress] {
                    let read = try? await history.record(.read, by: "reader") {
                        guard let value = Int(try await ask("read", at: address, on: loop)) else { throw Refusal() }
                        return .value(value)
                    }
                    if read != nil { break }
                }
                try await loop.clock.sleep(for: .milliseconds(270))
            }
        }
        simulation.advance(by: .seconds(20))
        try history.check()
    }

    private struct Refusal: Error {}
}
