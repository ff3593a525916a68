import Glibc
import RunLoopHosts
import RunLoopKit
import RunLoopSimulation
import RunLoopTesting
import RunLoopUnix
import Testing
import WebhooksTestSupport

@Suite("A day of Webhooks", .simulated, .timeLimit(.minutes(10)))
struct DayTests {
    /// The moments that the days meet together.
    private static let marks = [
        "a connection was refused", "a connection was reset", "a packet was sent again", "a link was cut",
        "a disk was full", "a host crashed", "a process was killed", "a write was torn", "an unsynced change was lost",
        "the log had a broken end", "the log was written anew",
    ]

    /// `DAYS=1000` runs as many days.
    @Test("each acknowledged hook is delivered, and none that was refused")
    func days() {
        var marks = Simulation.Marks()
        for seed in 0..<UInt64(amount(of: "DAYS", usually: 4)) {
            withSimulation(seed: seed) { simulation in
                let day = Day(simulation, serve: Receiver.serve([.takes, .takes, .takes, .refuses, .rests, .isSlow]))
                run(day)
                let failures = day.end()
                #expect(failures.isEmpty, "seed \(seed): \(failures.first ?? "")")
                #expect(day.acknowledged.count > 300 && day.refused.count > 5, "seed \(seed)")
                marks.add(simulation.marks)
            }
        }
        #expect(marks.missing(of: Self.marks) == [])
    }

    private func run(_ day: Day) {
        let simulation = day.simulation
        day.network.link.jitter = .milliseconds(20)
        day.network.link.lossRate = 0.01
        var random = simulation.loop.randomNumbers
        day.service.disk.slow(.sync, by: .milliseconds(Int.random(in: 0...50, using: &random)))
        for _ in 0..<48 {
            for _ in 0..<Int.random(in: 0...8, using: &random) {
                day.send(body: Int.random(in: 0..<20, using: &random) == 0 ? "no JSON" : nil)
                simulation.advance(by: .milliseconds(Int.random(in: 0...2_000, using: &random)))
            }
            trouble(Int.random(in: 0..<14, using: &random), day, &random)
            simulation.advance(by: .seconds(900))
            if !day.service.isRunning { day.service.start() }
        }
    }

    private func trouble(_ kind: Int, _ day: Day, _ random: inout RunLoop.RandomNumbers) {
        func some(_ range: ClosedRange<Int>) -> Duration { .milliseconds(Int.random(in: range, using: &random)) }
        func traffic() {
            for _ in 0..<10 {
                day.send()
                day.simulation.advance(by: some(0...300))
            }
        }
        switch kind {
        case 0: day.acknowledgement = { day.service.crash() }
        case 1: day.acknowledgement = { day.service.send(.kill) }
        case 2, 3:
            let delay = some(0...3_000)
            day.simulation.loop.perform(afterDelay: delay) { day.service.crash() }
        case 4: day.network.partition([day.service])
        case 5: day.network.cut(from: day.service, to: day.receivers[0])
        case 6, 7:
            day.service.disk.capacity = Int.random(in: 0...5_000, using: &random)
        case 8: day.service.send(.hangUp)
        case 9: day.service.send(.terminate)
        case 10: day.receivers[0].crash()
        case 11: day.service.disk.slow(.sync, by: some(0...800))
        case 12: day.service.disk.fail(.sync, errno: EIO)
        default: break
        }
        traffic()
        day.acknowledgement = nil
        day.service.disk.fail(.sync, errno: nil)
        day.simulation.advance(by: some(0...600_000))
        day.service.disk.capacity = nil
        day.network.heal()
        for host in [day.service] + day.receivers where !host.isRunning { host.start() }
    }
}
