import Glibc
import RunLoopKit
import RunLoopSimulation
import RunLoopUnix
import TestSupport
import Testing

@testable import RunLoopHosts

/// Runs a server that echoes, writes a file without syncing it, and watches `/etc`.
@Sendable private func serve(_ loop: RunLoop) throws {
    try echo(on: loop)
    let file = try Disk.current.open("/data/log", .readingAndWritingLocked)
    for place in 0..<5 { try file.write([1, 2, 3, 4], at: 4 * place) }
    let watcher = try FileWatcher { _, _ in }
    try watcher.watch("/etc/")
    try loop.add(watcher, forMode: .default)
    loop.perform(afterDelay: .seconds(10)) { try? file.write([5], at: 0) }
    // There are no further signs of life.
    _ = try? ServiceManager().ready()
    var options = Listener.Options()
    options.backlog = 1
    // This listener's connections are never accepted.
    _ = try Listener(address: Endpoint("0.0.0.0", port: 9), on: loop, inModes: "never", options: options) { _, _, _ in }
}

@Suite("Marks of simulated hosts")
struct MarkTests {
    /// Makes a mark happen, if the seed is right.
    ///
    /// - Returns: the counts of the mark before and after.
    private func provoke(_ mark: Mark, seed: UInt64) throws -> (before: Int, after: Int) {
        try withSimulation(seed: seed) { simulation in
            let network = SimulatedNetwork(simulation)
            let server = network.addHost(
                "server", addresses: ["10.1.0.1"],
                service: mark == .watchdogStarved ? .init(watchdogPeriod: .seconds(100)) : nil, program: serve)
            let client = Client(simulation, to: "server")
            simulation.advance(by: .seconds(1))
            let before = simulation.marks[mark.rawValue]
            func send(_ count: Int) { client.connection?.write([UInt8](repeating: 1, count: count)) }
            func sendDatagram() throws {
                let socket = try DatagramSocket(address: Endpoint("0.0.0.0", port: 0), on: simulation.loop) { _, _, _ in
                }
                socket.send([1], to: try Endpoint("10.1.0.1", port: 7))
            }
            switch mark {
            case .packetSentAgain:
                network.link.lossRate = 0.5
                send(1)
            case .connectionRefused: _ = Client(simulation, to: "server", port: 8)
            case .connectionReset: network.reset(between: server, and: network.test)
            case .connectionTimedOut:
                network.partition([server])
                send(1)
            case .connectionHalfOpen, .hostCrashed, .writeTorn, .changeLost, .nameLost: server.crash()
            case .backlogFull: for _ in 0..<3 { _ = Client(simulation, to: "server", port: 9) }
            case .writePartial, .socketFull: send(10_000_000)
            case .datagramLost:
                network.link.lossRate = 1
                try sendDatagram()
            case .datagramDoubled:
                network.link.duplicationRate = 1
                try sendDatagram()
            case .datagramHeld:
                network.link.reorderingRate = 1
                try sendDatagram()
            case .linkCut: network.cut(from: server, to: network.test)
            case .diskFull: server.disk.capacity = 0
            case .diskFailed: server.disk.fail(.write, errno: EIO)
            case .fileEventsLost:
                server.disk.fileEventLimit = 1
                server.disk.install([1], at: "/etc/a")
            case .hostStartedAgain:
                server.crash()
                server.start()
            case .processKilled: server.send(.terminate)
            case .watchdogStarved: break
            }
            simulation.advance(by: .seconds(2_000))
            return (before, simulation.marks[mark.rawValue])
        }
    }

    @Test("each mark is met when its moment comes, and not before", arguments: Mark.allCases)
    func each(mark: Mark) throws {
        var met = 0
        // Chance decides what a crash takes from the disk.
        for seed in 0..<50 as Range<UInt64> where met == 0 {
            let counts = try provoke(mark, seed: seed)
            #expect(counts.before == 0)
            met = counts.after
        }
        #expect(met > 0)
    }

    @Test("the page lists all marks, and no others")
    func page() {
        let root = #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
        let text = contents(of: "/\(root)/Sources/RunLoopHosts/RunLoopHosts.docc/TestADaemon.md")
        let rows = text.split(separator: "\n").drop { $0 != "| mark | moment |" }.prefix { $0.hasPrefix("|") }
        let names = rows.dropFirst(2).compactMap { $0.split(separator: "`").dropFirst().first.map(String.init) }
        let others = ["a clock was set back", "a connection was tried again"]
        #expect(Set(names) == Set(Mark.allCases.map(\.rawValue) + others))
    }
}
