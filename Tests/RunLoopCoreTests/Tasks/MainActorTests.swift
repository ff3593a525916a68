import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@Suite("The main actor")
struct MainActorTests {
    @Test("an asynchronous operation is run by its loop, to its result or its error")
    func run() {
        struct Refusal: Error {}
        withSimulation { simulation in
            let loop = simulation.loop
            let answer = try? loop.run {
                try await loop.clock.sleep(for: .seconds(5))
                return 42
            }
            #expect(answer == 42 && simulation.now == RunLoop.Instant(nanoseconds: 5_000_000_000))
            #expect(throws: Refusal.self) { try loop.run { throw Refusal() } }
            #expect(throws: RunLoop.WaitError.starved) {
                try loop.run { try await loop.remote.clock(inModes: .tracking).sleep(for: .seconds(1)) }
            }
        }
    }

    @Test("only the main thread's loop serves it")
    func elsewhere() async {
        await #expect(processExitsWith: .failure) {
            func serveElsewhere() { withSimulation { _ = $0.loop.serveMainActor() } }
            serveElsewhere()
        }
    }
}
