@_spi(Ports) import RunLoopCore
import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@_spi(Ports) @testable import RunLoopUnix

/// Look-ups with a resolver that takes virtual time; no real name server is used.
@Suite("Looking up names")
struct HostResolverTests {
    /// Calls `body` with a resolver that takes 5 s for each name, and logs the names.
    private func withSlowResolver(_ body: (Simulation, Locked<[String]>) throws -> Void) rethrows {
        try withSimulation { simulation in
            let names = Locked<[String]>([])
            let found = try! Endpoint("192.0.2.1", port: 0)
            HostResolver.finder.set(
                { name in
                    names.withLock { $0.append(name) }
                    simulation.spend(.seconds(5))
                    return .success([found])
                }, in: simulation.loop.world)
            try body(simulation, names)
        }
    }

    @Test("slow look-ups delay no background timer, and eight are made at a time")
    func manyNames() {
        withSlowResolver { simulation, _ in
            let fired = Locked<RunLoop.Instant?>(nil)
            var answered: [RunLoop.Instant] = []
            for number in 1...20 {
                HostResolver.resolve("host\(number).test", port: 80, on: simulation.loop) { result in
                    if case .success = result { answered.append(simulation.now) }
                }
            }
            DeliveryQueue.background.asyncAfter(.milliseconds(10)) { fired.withLock { $0 = simulation.now } }
            simulation.runUntilIdle()
            #expect(fired.withLock { $0 } == ms(10))
            let expected = [(8, 5), (8, 10), (4, 15)].flatMap { Array(repeating: ms($1 * 1_000), count: $0) }
            #expect(answered == expected)
        }
    }

    @Test("equal names that are asked for at the same time are looked up once, and later ones again")
    func equalNames() {
        withSlowResolver { simulation, names in
            var answers: [String] = []
            for port: UInt16 in 1...3 {
                simulation.loop.perform(at: ms(Int64(port) * 1_000)) {
                    HostResolver.resolve("one.test", port: port, on: simulation.loop) { result in
                        answers += (try? result.get().map { "\($0) \(simulation.now)" }) ?? []
                    }
                }
            }
            simulation.runUntilIdle()
            #expect(
                answers == ["192.0.2.1:1 6.000000000", "192.0.2.1:2 6.000000000", "192.0.2.1:3 6.000000000"])
            HostResolver.resolve("one.test", port: 4, on: simulation.loop) { _ in }
            simulation.runUntilIdle()
            #expect(names.withLock { $0 } == ["one.test", "one.test"])
        }
    }

    @Test("a look-up takes as long among many as among few")
    func manyUnderWay() {
        withSlowResolver { simulation, _ in
            let growth = growth(from: 250, to: 8_000) { count in
                let lookups = (0..<count).map { _ in
                    HostResolver.resolve("host.test", port: 80, on: simulation.loop) { _ in }
                }
                for lookup in lookups { lookup.cancel() }
            }
            #expect(growth < 6, "\(growth) times as long")
        }
    }

    @Test("addresses in digits wait for no thread", arguments: ["127.0.0.1", "::1", "fe80::1", "1.2.3"])
    func digits(text: String) {
        withSlowResolver { simulation, names in
            for number in 1...8 { HostResolver.resolve("host\(number).test", port: 80, on: simulation.loop) { _ in } }
            var answered: RunLoop.Instant?
            HostResolver.resolve(text, port: 80, on: simulation.loop) { result in
                if case .success(let addresses) = result, addresses.first?.port == 80 { answered = simulation.now }
            }
            #expect(answered == nil)
            simulation.runUntilIdle()
            #expect(answered == ms(0))
            #expect(names.withLock { $0 }.allSatisfy { $0.hasSuffix(".test") })
        }
    }

    @Test("a look-up fails at its timeout, also while it waits for a thread")
    func timeout() {
        withSlowResolver { simulation, names in
            var failures: [String] = []
            for number in 1...9 {
                HostResolver.resolve("host\(number).test", port: 80, on: simulation.loop, timeout: .seconds(3)) {
                    result in
                    guard case .failure(let failure) = result else { return }
                    failures.append("\(failure.kind) \(failure) \(simulation.now)")
                }
            }
            simulation.runUntilIdle()
            #expect(failures == (1...9).map { "timedOut host\($0).test: no answer within 3.0 seconds 3.000000000" })
            #expect(names.withLock { $0 }.count == 8, "nobody waited for the ninth any more")
        }
    }

    @Test(
        "a timeout may be absurd",
        arguments: [Duration.zero, .seconds(-1), Duration(attoseconds: .max), Duration(attoseconds: .min)])
    func absurdTimeout(timeout: Duration) {
        withSlowResolver { simulation, _ in
            var result: Result<[Endpoint], HostResolver.LookupError>?
            HostResolver.resolve("host.test", port: 80, on: simulation.loop, timeout: timeout) { result = $0 }
            #expect(result == nil)
            simulation.runUntilIdle()
            switch result {
            case .success: #expect(timeout > .seconds(5))
            case .failure(let failure): #expect(timeout <= .zero && failure.kind == .timedOut)
            case nil: Issue.record("no outcome")
            }
        }
    }

    @Test("a cancelled look-up releases its completion uncalled, and is not performed unless it has begun")
    func cancelling() {
        withSlowResolver { simulation, names in
            weak var held: CustomSource?
            var calls = 0
            var lookups: [HostLookup] = []
            do {
                let object = CustomSource()
                held = object
                for number in 1...9 {
                    lookups.append(
                        HostResolver.resolve("host\(number).test", port: 80, on: simulation.loop) { _ in
                            calls += 1
                            _ = object
                        })
                }
            }
            simulation.advance(by: .seconds(1))
            #expect(lookups.allSatisfy(\.isPending) && held != nil)
            for lookup in lookups {
                lookup.cancel()
                lookup.cancel()
            }
            #expect(!lookups.contains(where: \.isPending) && held == nil)
            #expect(simulation.loop.run(in: .default) == .finished)
            // A request for a look-up that is under way does not take another thread.
            HostResolver.resolve("host1.test", port: 80, on: simulation.loop) { _ in calls += 10 }
            simulation.runUntilIdle()
            #expect(calls == 10 && names.withLock { $0 }.count == 8 && simulation.now == ms(5_000))
        }
    }

    @Test("a loop that ends drops its look-ups, and other loops get their answers")
    func endOfLoop() {
        withSlowResolver { simulation, _ in
            let calls = Counter()
            let thread = LoopThread(name: "short") { loop in
                HostResolver.resolve("host.test", port: 80, on: loop) { _ in calls.add(100) }
            }
            HostResolver.resolve("host.test", port: 80, on: simulation.loop) { _ in calls.add() }
            simulation.advance(by: .seconds(1))
            thread.stop()
            thread.join()
            simulation.runUntilIdle()
            #expect(calls.value == 1)
        }
    }

    @Test("a completion is called in its modes only")
    func modes() {
        withSlowResolver { simulation, _ in
            let loop = simulation.loop
            var answered: RunLoop.Instant?
            HostResolver.resolve("host.test", port: 80, on: loop, inModes: "panel") { _ in answered = simulation.now }
            loop.add(CustomSource(), forMode: .default)
            simulation.advance(by: .seconds(20))
            #expect(answered == nil)
            #expect(loop.run(in: "panel") == .finished)
            #expect(answered == ms(20_000))
        }
    }

    @Test("an invalid name is a failure of its own kind", arguments: ["", "local\0host", "127.0.0.1\0"])
    func invalid(name: String) {
        withSlowResolver { simulation, names in
            var kind: HostResolver.LookupError.Kind?
            HostResolver.resolve(name, port: 80, on: simulation.loop) { result in
                if case .failure(let failure) = result { kind = failure.kind }
            }
            simulation.runUntilIdle()
            #expect(kind == .invalidName && names.withLock { $0 }.isEmpty)
        }
    }
}
