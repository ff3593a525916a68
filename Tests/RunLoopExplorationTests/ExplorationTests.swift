import RunLoopCore
import RunLoopExploration
import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

struct Broken: Error, CustomStringConvertible {
    let description: String
}

/// An account that checks its balance, does something else, and takes the money only then.
private actor Account {
    let home: RunLoop.Executor
    private(set) var balance = 100
    nonisolated var unownedExecutor: UnownedSerialExecutor { home.serial.asUnownedSerialExecutor() }

    init(_ home: RunLoop.Executor) {
        self.home = home
    }

    func withdraw(_ amount: Int, isMended: Bool) async {
        if !isMended {
            guard balance >= amount else { return }
            await Task.yield()
        }
        guard isMended ? balance >= amount : true else { return }
        balance -= amount
    }
}

private func withdraw(_ simulation: Simulation, isMended: Bool) throws {
    let account = Account(simulation.loop.remote.executor())
    for _ in 0..<2 {
        simulation.loop.task { await account.withdraw(80, isMended: isMended) }
    }
    simulation.runUntilIdle()
    let balance = account.assumeIsolated { $0.balance }
    guard balance >= 0 else { throw Broken(description: "the balance is \(balance)") }
}

/// A program in which one task prepares in many steps what another one uses.
private func order(_ simulation: Simulation) throws {
    let loop = simulation.loop
    let (isReady, isWrong) = (Counter(), Counter())
    loop.task {
        for _ in 0..<3 { await Task.yield() }
        isReady.add()
    }
    loop.task {
        for _ in 0..<12 { await Task.yield() }
        if isReady.value == 0 { isWrong.add() }
    }
    simulation.runUntilIdle()
    if isWrong.value > 0 { throw Broken(description: "used before it was ready") }
}

@Suite("Exploration")
struct ExplorationTests {
    @Test("a fault from a suspension between a check and its action is found, kept short, and replayed")
    func checkThenAct() throws {
        func explore() -> Exploration.Finding? {
            guard case .failed(let finding) = Exploration(schedules: 500).run({ try withdraw($0, isMended: false) })
            else { return nil }
            return finding
        }
        let finding = try #require(explore())

        #expect(finding.fault.description == "the balance is -60")
        #expect(finding.isReproducible)
        #expect(finding.token.departures.count <= 1)
        let token = try #require(ScheduleToken("\(finding.token)"))
        #expect(token == finding.token)
        func replay(isMended: Bool) -> Exploration.Fault? {
            Exploration().replay(token) { try withdraw($0, isMended: isMended) }
        }
        #expect(replay(isMended: false) == finding.fault)
        #expect(replay(isMended: true) == nil)
        // An equal seed explores the same schedules.
        #expect(explore()?.schedules == finding.schedules)
    }

    @Test("the mended twin of a program with a fault passes")
    func mended() {
        let result = Exploration(schedules: 2000).run { try withdraw($0, isMended: true) }
        guard case .passed(2000) = result else {
            Issue.record("\(result)")
            return
        }
    }

    @Test("an order that one step in many upsets")
    func rareOrder() throws {
        func explore() -> Exploration.Finding? {
            guard case .failed(let finding) = Exploration(schedules: 500).run({ try order($0) }) else { return nil }
            return finding
        }
        let finding = try #require(explore())

        #expect(finding.fault.description == "used before it was ready")
        #expect(finding.token.departures.count <= 2)
    }
}
