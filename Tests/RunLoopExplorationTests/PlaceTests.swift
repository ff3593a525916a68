import Glibc
import RunLoopExploration
import RunLoopHosts
import RunLoopKit
import RunLoopSimulation
import RunLoopUnix
import TestSupport
import Testing

private let limits = Exploration.Limits(reportsDeadlocks: false, reportsLeaks: false)

private func explore(
    schedules: Int = 300, _ body: (Simulation) throws -> Void
) -> Exploration.Finding? {
    guard case .failed(let finding) = Exploration(schedules: schedules, limits: limits).run(body) else { return nil }
    return finding
}

/// A host that performs a block once.
@discardableResult
private func host(
    _ name: String, on network: SimulatedNetwork, _ block: @escaping @Sendable (RunLoop, Disk) throws -> Void
) -> SimulatedHost {
    let host = network.addHost(name) { loop in
        loop.perform { do { try block(loop, Disk.current) } catch {} }
    }
    host.disk.install([], at: "/log")
    return host
}

@Suite("Places within handlers, at calls that reach the world")
struct PlaceTests {
    @Test("a host crashes between two calls of a handler, and runs nothing more: no line, no defer")
    func crash() throws {
        func run(_ simulation: Simulation, _ log: Log<String>) {
            let host = host("store", on: SimulatedNetwork(simulation)) { _, disk in
                defer { log("deferred") }
                let file = try disk.open("/log", .writing)
                log("opened")
                try file.write([1], at: 0)
                log("written")
                try file.sync()
                log("synced")
            }
            simulation.mayHappen("the store crashes") {
                log("crashed")
                host.crash()
            }
            simulation.advance(by: .seconds(1))
        }
        var logs: Set<[String]> = []
        _ = explore { simulation in
            let log = Log<String>()
            run(simulation, log)
            logs.insert(log.entries)
        }
        let all = ["opened", "written", "synced", "deferred"]
        // Also before and after the handler, and in the test's own.
        let expected = (0...4).map { all.prefix($0) + ["crashed"] } + [all]
        #expect(logs.subtracting(expected.map(Array.init)).isEmpty, "\(logs)")
        #expect(logs.isSuperset(of: [["opened", "crashed"], ["opened", "written", "crashed"]]), "\(logs)")
        let finding = try #require(
            explore { simulation in
                let log = Log<String>()
                run(simulation, log)
                if log.entries == ["opened", "written", "crashed"] { throw Broken(description: "it has not returned") }
            })
        let token = "\(finding.token)"
        #expect(
            ["after store: write /log", "before store: sync /log", "after store: sync /log"].contains {
                token == "0:the store crashes \($0)@0=1" && finding.picture.contains("the store crashes \($0) ←")
            }, "\(finding)")
    }

    /// Returns the order of the calls of three threads on two hosts: each writes twice in one handler.
    private func order(_ simulation: Simulation, hasFault: Bool) -> String {
        let (network, log) = (SimulatedNetwork(simulation), Log<String>())
        @Sendable func write(_ name: String, _ disk: Disk) throws {
            let file = try disk.open("/log", .writing)
            try file.write([1], at: 0)
            log(name)
            try file.write([1], at: 0)
            log(name)
        }
        host("one", on: network) { loop, disk in
            let thread = LoopThread(name: "b") { $0.add(CustomSource(), forMode: .default) }
            thread.remote.perform { _ in try? write("b", Disk.current) }
            loop.perform { try? write("a", disk) }
            loop.perform(afterDelay: .seconds(1)) { withExtendedLifetime(thread) {} }
        }
        host("other", on: network) { _, disk in try write("c", disk) }
        if hasFault { simulation.mayHappen("nothing") {} }
        simulation.advance(by: .seconds(2))
        return log.entries.joined()
    }

    /// Returns the orders in which both calls of `c` come before, between and after others.
    ///
    /// - Parameter within: `true` if they may come within a handler of the others, and the others between them.
    private static func interleavings(of others: String, within: Bool) -> [String] {
        (0...4).flatMap { first in
            (first...4).map { second in
                var letters = Array(others)
                letters.insert("c", at: first)
                letters.insert("c", at: second + 1)
                return String(letters)
            }
        }.filter { within || $0.contains("cc") && $0.contains("aa") && $0.contains("bb") }
    }

    @Test("other machines run within a handler, and threads of the same machine do not; without a fault, none does")
    func otherMachines() {
        for hasFault in [false, true] {
            var orders: Set<String> = []
            _ = Exploration(schedules: 400, limits: limits).run { orders.insert(order($0, hasFault: hasFault)) }
            let expected = Set(["aabb", "bbaa"].flatMap { Self.interleavings(of: $0, within: hasFault) })
            #expect(orders.isSubset(of: expected), "\(orders.subtracting(expected))")
            #expect(hasFault ? orders.count > 12 : orders == expected, "\(orders.sorted())")
        }
    }

    /// A program in which a daemon writes its settings in two calls of one handler, and its child reads them meanwhile.
    private func readSettings(_ simulation: Simulation, isAtomic: Bool) throws {
        let network = SimulatedNetwork(simulation)
        let seen = Log<[UInt8]?>()
        let host = network.addHost("daemon") { loop in
            _ = try ChildProcess.spawn(.named("reader"))
            loop.perform(afterDelay: .seconds(1)) {
                do {
                    let path = isAtomic ? "/data/settings.new" : "/data/settings"
                    let file = try Disk.current.open(path, .readingAndWritingNew)
                    try file.write([1], at: 0)
                    try file.write([2], at: 1)
                    if isAtomic { try Disk.current.rename(path, to: "/data/settings") }
                } catch { Issue.record(error) }
            }
        }
        host.install(program: "/bin/reader") { process in
            process.loop.perform(afterDelay: .seconds(1)) {
                seen.append(try? Disk.current.open("/data/settings", .reading).contents())
            }
        }
        simulation.advance(by: .seconds(2))
        guard seen.entries.count == 1, let bytes = seen.entries[0] else { return }
        if bytes != [1, 2] { throw Broken(description: "half of the settings were read: \(bytes)") }
    }

    @Test("a process reads what another one of its machine has half written")
    func otherProcesses() throws {
        let finding = try #require(explore { try readSettings($0, isAtomic: false) })
        #expect(finding.fault.description.contains("half of the settings"), "\(finding)")
        #expect(finding.token.departures.count <= 2, "\(finding)")
        #expect(explore { try readSettings($0, isAtomic: true) } == nil)
        try withSimulation { try readSettings($0, isAtomic: false) }
    }

    @Test("the first schedule of an exploration has the order of a simulation, also with places")
    func usual() {
        var explored = ""
        _ = Exploration(schedules: 1, limits: limits).run { explored = order($0, hasFault: true) }
        #expect(explored == withSimulation { order($0, hasFault: true) })
    }

    @Test(
        "a call fails, and the token says which and how",
        arguments: [
            ("open", CallFaults.ioErrors, EIO), ("write", .ioErrors, EIO), ("write", .fullDisk, ENOSPC),
            ("sync", .ioErrors, EIO),
        ])
    func errors(call: String, faults: CallFaults, reason: Int32) throws {
        func run(_ simulation: Simulation) throws {
            let failed = Log<SystemError>()
            let host = host("store", on: SimulatedNetwork(simulation)) { _, disk in
                do {
                    let file = try disk.open("/log", .writing)
                    try file.write([1], at: 0)
                    try file.sync()
                } catch let error as SystemError { failed.append(error) }
            }
            host.callsMayFail(with: faults)
            simulation.advance(by: .seconds(1))
            if failed.entries == [SystemError("\(call) /log", errno: reason)] { throw Broken(description: "it failed") }
        }
        try withSimulation { try run($0) }
        let finding = try #require(explore { try run($0) })
        let words = "store: \(call) /log fails with \(reason == EIO ? "EIO" : "ENOSPC")"
        #expect("\(finding.token)" == "0:\(words)@0=1" && finding.picture.contains(words), "\(finding)")
    }

    @Test("no more calls fail than may, of any kind", arguments: [1, 3])
    func budget(most: Int) {
        var counts: Set<Int> = []
        _ = explore { simulation in
            let failed = Counter()
            let host = host("store", on: SimulatedNetwork(simulation)) { _, disk in
                for _ in 0..<20 {
                    do {
                        let file = try disk.open("/log", .writing)
                        try file.write([1, 2, 3], at: 0)
                        try file.sync()
                    } catch { failed.add() }
                }
            }
            host.callsMayFail(with: [.fullDisk, .ioErrors], atMost: most)
            simulation.advance(by: .seconds(1))
            counts.insert(failed.value)
        }
        #expect(counts == Set(0...most))
    }

    @Test("a write is cut short and continued, so a crash may come between the parts")
    func shortWrites() throws {
        let finding = try #require(
            explore(schedules: 1000) { simulation in
                let host = host("store", on: SimulatedNetwork(simulation)) { _, disk in
                    try disk.open("/log", .writing).write([1, 2, 3, 4], at: 0)
                }
                host.callsMayFail(with: .shortWrites)
                let lengths = Log<Int>()
                simulation.mayHappen("a look") { lengths.append(host.disk.contents(of: "/log")!.count) }
                simulation.advance(by: .seconds(1))
                if lengths.entries == [2] { throw Broken(description: "half of it was written") }
                #expect([[], [0], [1], [3], [4]].contains(lengths.entries))
                #expect(host.disk.contents(of: "/log") == [1, 2, 3, 4])
            })
        let departures = finding.token.departures
        #expect(departures.first?.place == "store: write /log is short" && departures.count == 2, "\(finding)")
    }

    /// A program in which a client sends ten bytes three times, and receives them again.
    private func talk(_ simulation: Simulation, _ faults: CallFaults) throws {
        let (network, loop) = (SimulatedNetwork(simulation), simulation.loop)
        let address = try Endpoint("10.1.0.1", port: 7)
        let server = network.addHost("server", addresses: ["10.1.0.1"]) { loop in
            let listener = try Listener(address: address, on: loop)
            loop.task(name: "server") {
                guard let connection = try await listener.accept() else { return }
                while let bytes = try await connection.read() { try await connection.write(Array(bytes)) }
            }
        }
        server.callsMayFail(with: faults, atMost: 3)
        var failure: (any Error)?
        loop.task(name: "client") {
            do {
                let connection = try await Connection.connect(to: address, on: loop)
                for _ in 0..<3 {
                    try await connection.write([UInt8](repeating: 1, count: 10))
                    var count = 0
                    while count < 10, let bytes = try await connection.read() { count += bytes.count }
                    if count < 10 { throw Broken(description: "the end") }
                }
                connection.close()
            } catch { failure = error }
        }
        simulation.advance(by: .seconds(100))
        if let failure { throw failure }
    }

    @Test("a connection is reset at both ends")
    func resets() throws {
        let finding = try #require(explore { try talk($0, .resets) })
        #expect(finding.token.departures.count == 1, "\(finding)")
        let (place, calls) = (finding.token.departures[0].place, ["receive from test", "send to test"])
        #expect(calls.contains { place == "server: \($0) finds a reset" }, "\(finding)")
    }

    @Test("interrupted calls are made again")
    func interruptions() {
        let finding = explore(schedules: 500) { try talk($0, .interruptions) }
        #expect(finding == nil, "\(String(describing: finding))")
    }

    /// The number of steps, in the last of which a bug may be.
    private static let steps = 200

    /// Explores a program with a bug that needs a crash in one of its steps.
    ///
    /// - Returns: the number of the schedule that finds the bug.
    private static func schedule(thatFinds step: Int, seed: UInt64) -> Int? {
        let result = Exploration(schedules: 10 * steps, seed: seed).run { simulation in
            let (past, isBroken) = (Counter(), Flag())
            simulation.mayHappen("a crash") { if past.value == step { isBroken.set() } }
            let source = CustomSource { source in if past.add() < steps { source.signal() } }
            simulation.loop.add(source, forMode: .default)
            source.signal()
            simulation.runUntilIdle()
            if isBroken.isSet { throw Broken(description: "it crashed after step \(step)") }
        }
        guard case .failed(let finding) = result else { return nil }
        return finding.schedules
    }

    @Test("a crash that matters only in the last of many steps is found as soon as one in the tenth")
    func late() {
        let medians = [10, Self.steps].map { step in
            let schedules = seeds(usually: 3).map { Self.schedule(thatFinds: step, seed: $0) ?? .max }
            return schedules.sorted()[schedules.count / 2]
        }
        #expect(medians[1] <= 4 * medians[0] && medians[0] <= 4 * medians[1], "\(medians)")
        #expect(medians.allSatisfy { $0 <= Self.steps }, "\(medians)")
    }
}
