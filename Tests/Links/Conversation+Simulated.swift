import RunLoopHosts
import RunLoopKit
import RunLoopSimulation
import RunLoopUnix
import Synchronization

extension Conversation {
    /// Holds the conversation between two simulated hosts.
    func simulated(seed: UInt64) -> [Event] {
        let events = Mutex<[Event]>([])
        let start = RunLoop.Instant(nanoseconds: 1_000_000_000)
        withSimulation(seed: seed) { simulation in
            let network = SimulatedNetwork(simulation)
            network.link = link
            func add(_ name: Side.Name, _ program: @escaping Program) -> SimulatedHost {
                network.addHost(name.rawValue, addresses: [name.address]) { loop in
                    let side = Side(loop: loop) { text, count in
                        let event = Event(side: name, text: text, count: count, time: loop.now - start)
                        events.withLock { $0.append(event) }
                    }
                    try program(side)
                }
            }
            let server = add(.server, server)
            simulation.advance(to: start)
            let client = add(.client, client)
            for fault in faults {
                switch fault {
                case .cut(let time, let end):
                    simulation.advance(to: start + time)
                    network.cut(between: client, and: server)
                    guard let end else { continue }
                    simulation.advance(to: start + end)
                    network.heal()
                case .killServer(let time):
                    simulation.advance(to: start + time)
                    server.send(.kill)
                }
            }
            simulation.advance(by: .seconds(300))
        }
        return events.withLock { $0 }
    }
}
