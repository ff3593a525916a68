@_spi(Ports) import RunLoopConformance
@_spi(Ports) import RunLoopCore
import RunLoopSimulation
import Testing

@testable import RunLoopLibevent

@Suite("Every world", .timeLimit(.minutes(15)))
struct WorldConformanceTests {
    private static let subjects = [
        WorldSubject("real") { body in
            let driver = try LibeventDriver(waker: EventWaker())
            try body(RunLoop(driver: driver, world: RealWorld.shared, remote: nil))
        },
        WorldSubject("simulated") { body in try withSimulation { try body($0.loop) } },
    ]

    @Test("meets the requirements", arguments: subjects, WorldCheck.all)
    func conforms(_ world: WorldSubject, to requirement: WorldCheck) throws {
        try requirement.check(world)
    }
}
