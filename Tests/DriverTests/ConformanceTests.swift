import Glibc
@_spi(Ports) import RunLoopConformance
@_spi(Ports) import RunLoopCore
import RunLoopSimulation
import Testing

@testable import RunLoopLibevent

@Suite("Every driver", .timeLimit(.minutes(15)))
struct ConformanceTests {
    private static let subjects = [
        DriverSubject("libevent") { body in
            try body(LibeventDriver(waker: EventWaker()), RealWorld.shared, setSystemClock)
        },
        DriverSubject("virtual time", isVirtual: true) { body in
            try withSimulation { simulation in
                try body(simulation.loop.driver, simulation.loop.world) {
                    simulation.wallTime = simulation.wallTime + .seconds(1)
                    return true
                }
            }
        },
    ]

    /// Sets the system's clock to the time that it shows, on a machine of CI that permits it: elsewhere other programs
    /// watch the clock.
    private static func setSystemClock() -> Bool {
        var time = timespec()
        guard getenv("CI") != nil, clock_gettime(CLOCK_REALTIME, &time) == 0 else { return false }
        return clock_settime(CLOCK_REALTIME, &time) == 0
    }

    @Test("meets the requirements", arguments: subjects, DriverCheck.all)
    func conforms(_ driver: DriverSubject, to requirement: DriverCheck) throws {
        try requirement.check(driver)
    }
}
