import ExampleTestSupport
import RunLoopHosts
import RunLoopKit
import RunLoopSimulation
import Testing

@testable import Raft

@Suite("The store")
struct StoreTests {
    @Test(
        "a vote or an entry is announced only after it is on the disk",
        arguments: [.vote(isGranted: true), .appended(upTo: 1, round: 1)] as [Message.Body])
    func order(answer: Message.Body) {
        let record = Record.entry(Entry(term: 1, command: .nothing), at: 1)
        let message = Action.send(Message(term: 1, body: answer), to: "b")
        let log = Log<(action: Action, delay: Duration)>()
        withSimulation { simulation in
            let host = SimulatedNetwork(simulation).addHost("a") { loop in
                let journal = try Journal(at: "/data/journal")
                _ = try journal.load()
                let store = Store(journal, on: loop)
                let begin = loop.now
                store.actionHandler = { log.append(($0, loop.now - begin)) }
                store.carryOut(Effects(records: [.term(1, vote: "b"), record], actions: [message]))
                loop.perform(afterDelay: .seconds(1)) { store.close() }
            }
            host.disk.slow(.sync, by: .milliseconds(100))
            simulation.runUntilIdle()
        }
        #expect(log.entries.map(\.action) == [message])
        #expect(log.entries.allSatisfy { $0.delay >= .milliseconds(100) }, "\(log.entries)")
    }
}
