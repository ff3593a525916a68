@_spi(Ports) import RunLoopConformance
@_spi(Ports) import RunLoopCore
import RunLoopSimulation
import Testing

@testable import RunLoopLibevent

@Suite("Every driver", .timeLimit(.minutes(15)))
struct ConformanceTests {
    private static let subjects = [
        DriverSubject("libevent") { body in try body(LibeventDriver(waker: EventWaker()), RealWorld.shared) },
        DriverSubject("virtual time", isVirtual: true) { body in
            try withSimulation { try body($0.loop.driver, $0.loop.world) }
        },
    ]

    @Test("meets the requirements", arguments: subjects, DriverCheck.all)
    func conforms(_ driver: DriverSubject, to requirement: DriverCheck) throws {
        try requirement.check(driver)
    }
}
