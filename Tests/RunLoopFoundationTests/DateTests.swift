import FoundationEssentials
import RunLoopFoundation
import RunLoopKit
import RunLoopSimulation
import Testing

@Suite("Dates and seconds")
struct DateTests {
    @Test("in a simulation time begins at the reference date")
    func referenceDate() {
        withSimulation { simulation in
            var fired: [Date] = []
            let timer = Timer(fire: Date(timeIntervalSinceReferenceDate: 2.5), interval: 1.5, repeats: true) { _ in
                fired.append(simulation.loop.date(of: simulation.now))
            }
            simulation.loop.add(timer, forMode: .default)
            simulation.advance(by: .seconds(5))
            #expect(fired == [2.5, 4.0].map { Date(timeIntervalSinceReferenceDate: $0) })
        }
    }

    @Test("a date and its instant go together on the real clock")
    func roundTrip() {
        let loop = RunLoop.current
        let date = Date().addingTimeInterval(3_600)
        #expect(abs(loop.date(of: loop.instant(of: date)).timeIntervalSince(date)) < 1)
        #expect(loop.instant(of: .distantFuture) > loop.now + .seconds(3_600))
        #expect(loop.date(of: .distantFuture) == .distantFuture)
    }

    @Test("a timer in seconds fires first after its interval")
    func seconds() {
        withSimulation { simulation in
            var fired: [RunLoop.Instant] = []
            Timer.scheduledTimer(withTimeInterval: 0.25, repeats: true) { _ in fired.append(simulation.now) }
            simulation.advance(by: .milliseconds(600))
            #expect(fired.map(\.nanoseconds) == [250_000_000, 500_000_000])
        }
    }

    @Test("an interval that is not a number is refused")
    func notANumber() async {
        await #expect(processExitsWith: .failure) { schedule(.nan) }
    }

    @Test("an infinite interval is refused")
    func infinite() async {
        await #expect(processExitsWith: .failure) { schedule(.infinity) }
    }
}

private func schedule(_ interval: TimeInterval) {
    Timer.scheduledTimer(withTimeInterval: interval, repeats: true) { _ in }
}
