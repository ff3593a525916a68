import RunLoopExploration
import RunLoopHosts
@_spi(Ports) import RunLoopKit
import RunLoopSimulation
import RunLoopUnix
import TestSupport
import Testing

/// A store that writes a record in one step, and syncs it in the next.
private func store(_ simulation: Simulation, isMended: Bool) throws {
    let (acknowledged, starts) = (Counter(), Counter())
    let host = SimulatedNetwork(simulation).addHost("store") { loop in
        starts.add()
        let file = try Disk.current.open("/log", .writing)
        var count = 0
        loop.task(name: "writer") {
            for _ in 0..<3 {
                try file.write([1], at: count)
                count += 1
                if !isMended { acknowledged.add() }
                await Task.yield()
                try file.sync()
                if isMended { acknowledged.add() }
                try await loop.clock.sleep(for: .seconds(1))
            }
        }
    }
    host.disk.install([], at: "/log")
    let kept = Locked<Int?>(nil)
    simulation.mayHappen("the store crashes") {
        let promised = acknowledged.value
        host.crash()
        let records = host.disk.contents(of: "/log")!.filter { $0 == 1 }.count
        kept.withLock { $0 = records - promised }
        host.start()
    }
    simulation.advance(by: .seconds(10))
    if let kept = kept.withLock(\.self) {
        guard kept >= 0 else { throw Broken(description: "\(-kept) records are missing") }
        guard starts.value == 2 else { throw Broken(description: "the store has not started again") }
    }
}

@Suite("Exploration of hosts")
struct CrashTests {
    private func explore(isMended: Bool) -> Exploration.Finding? {
        let result = Exploration(schedules: 200, limits: .init(reportsLeaks: false)).run {
            try store($0, isMended: isMended)
        }
        guard case .failed(let finding) = result else { return nil }
        return finding
    }

    @Test("a host crashes between two of its own steps, or within one, and starts again")
    func crash() throws {
        let finding = try #require(explore(isMended: false))
        #expect(finding.fault.description == "1 records are missing", "\(finding)")
        let (crashes, loss) = (finding.token.departures.dropLast(), finding.token.departures.last)
        #expect(!crashes.isEmpty && crashes.allSatisfy { $0.place.contains("the store crashes") }, "\(finding)")
        #expect(loss?.place == "store keeps changes of /log" && loss?.instead == .possibility(0))
        #expect(finding.nearest != nil)
    }

    @Test("a store that acknowledges only synced data loses nothing, regardless of when it crashes")
    func mended() {
        let finding = explore(isMended: true)
        #expect(finding == nil, "\(String(describing: finding))")
    }

    @Test("tasks in a host's second life have other names: a schedule departs in the life that it names")
    func lives() throws {
        let result = Exploration(schedules: 100, limits: .init(reportsLeaks: false)).run { simulation in
            let (log, starts) = (Log<String>(), Counter())
            let host = SimulatedNetwork(simulation).addHost("store") { loop in
                starts.add()
                let life = starts.value
                for name in ["a", "b"] { loop.task({ log("\(name)\(life)") }, line: 7) }
            }
            simulation.advance(by: .seconds(1))
            host.start()
            simulation.advance(by: .seconds(1))
            if log.entries == ["a1", "b1", "b2", "a2"] { throw Broken(description: "b was first, in the second life") }
        }
        guard case .failed(let finding) = result else { return #expect(Bool(false), "\(result)") }
        #expect(
            finding.isReproducible && "\(finding.token)" == "0:store 2.CrashTests:7@0>store 2.CrashTests:7 2",
            "\(finding)")
    }

    @Test("a task that ends with its process in a crash is no leak")
    func noLeak() {
        let crashes = Counter()
        let result = Exploration(schedules: 100).run { simulation in
            let host = SimulatedNetwork(simulation).addHost("store") { loop in
                loop.task { while true { try await loop.clock.sleep(for: .seconds(1)) } }
            }
            simulation.mayHappen("the store crashes") {
                crashes.add()
                host.crash()
            }
            simulation.advance(by: .seconds(10))
        }
        guard case .passed = result else { return #expect(Bool(false), "\(result)") }
        #expect(crashes.value > 10)
    }
}
