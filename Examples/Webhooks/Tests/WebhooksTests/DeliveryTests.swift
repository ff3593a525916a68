import RunLoopHTTP
import RunLoopHosts
import RunLoopKit
import RunLoopSimulation
import RunLoopTesting
import RunLoopUnix
import Testing
import WebhooksTestSupport

@Suite("Deliveries", .simulated)
struct DeliveryTests {
    @Test("tries come at growing pauses, and not before the destination has rested")
    func pauses() throws {
        let dates = Log<Double>()
        withSimulation { simulation in
            let day = Day(simulation, pauses: (4, 16)) { loop, taken in
                try Receiver.serve(on: loop) { request in
                    dates.append(Double(loop.now.nanoseconds) / 1e9)
                    switch dates.entries.count {
                    case 1...4: throw HTTPServer.Refusal(.internalServerError)
                    case 5: throw HTTPServer.Refusal(.tooManyRequests, headerFields: [.retryAfter: "60"])
                    default: try await Receiver.take(request, taken)
                    }
                }
            }
            simulation.advance(by: .seconds(1))
            day.send()
            #expect(day.end() == [])
        }
        let pauses = zip(dates.entries.dropFirst(), dates.entries).map { $0 - $1 }
        try #require(pauses.count == 5)
        for (pause, whole) in zip(pauses, [4.0, 8, 16, 16]) {
            #expect((whole / 2...whole + 0.1).contains(pause), "\(pauses)")
        }
        #expect((60...60.1).contains(pauses[4]), "\(pauses)")
    }

    @Test("a destination has as many deliveries at a time as it may, and a hook that fails lets others pass")
    func limit() {
        let (counts, order) = (Log<Int>(), Log<String>())
        withSimulation { simulation in
            let day = Day(simulation) { loop, taken in
                var count = 0
                var failed: Set<String> = []
                try Receiver.serve(on: loop) { request in
                    count += 1
                    defer { count -= 1 }
                    counts.append(count)
                    let key = request.headerFields[.init("Idempotency-Key")!] ?? "-"
                    if failed.insert(key).inserted, key == "k1" { throw HTTPServer.Refusal(.internalServerError) }
                    try await loop.clock.sleep(for: .milliseconds(500))
                    order.append(key)
                    try await Receiver.take(request, taken)
                }
            }
            simulation.advance(by: .seconds(1))
            for _ in 0..<30 { day.send() }
            #expect(day.end() == [])
        }
        #expect(counts.entries.max() == 3 && order.entries.count == 30 && order.entries.first != "k1")
    }

    @Test("a hook that is too old is given up, also by the next start")
    func lifetime() {
        let dates = Log<RunLoop.Instant>()
        withSimulation { simulation in
            let day = Day(simulation, lifetimeHours: 1) { loop, _ in
                try Receiver.serve(on: loop) { _ in
                    dates.append(loop.now)
                    throw HTTPServer.Refusal(.internalServerError)
                }
            }
            simulation.advance(by: .seconds(1))
            day.send()
            simulation.advance(by: .seconds(4_500))
            day.service.send(.terminate)
            simulation.advance(by: .seconds(60))
            day.service.start()
            simulation.advance(by: .seconds(4_500))
        }
        // The last try is the first behind the hour.
        #expect(dates.entries.filter { $0 > .init(nanoseconds: 3_600_000_000_000) }.count == 1, "\(dates.entries)")
    }

    @Test("the service says how it stands, and stops within its limit although a destination does not answer")
    func messages() {
        withSimulation { simulation in
            let day = Day(simulation) { loop, _ in
                try Receiver.serve(on: loop) { _ in try await loop.clock.sleep(for: .seconds(1_000)) }
            }
            simulation.advance(by: .seconds(1))
            for _ in 0..<5 { day.send() }
            simulation.advance(by: .seconds(9))
            #expect(day.acknowledged.count == 5)
            day.service.send(.hangUp)
            simulation.advance(by: .seconds(5))
            day.service.send(.terminate)
            simulation.advance(by: .seconds(36))
            if case .exited(0)? = day.service.ending {} else { Issue.record("\(day.service.ending as Any)") }
            let texts = day.service.messages.map { String($0.text.prefix { $0 != "\n" }) }
            #expect(texts.filter { $0 != "WATCHDOG=1" } == ["READY=1", "RELOADING=1", "READY=1", "STOPPING=1"])
        }
    }

    @Test("a disk that hangs ends the signs of life")
    func watchdog() {
        withSimulation { simulation in
            let day = Day(simulation, serve: Receiver.serve([.takes]))
            simulation.advance(by: .seconds(1))
            day.service.disk.slow(.sync, by: .seconds(600))
            day.send()
            simulation.advance(by: .seconds(300))
            if case .starvedWatchdog? = day.service.ending {} else { Issue.record("\(day.service.ending as Any)") }
            #expect(day.acknowledged.isEmpty)
        }
    }
}
