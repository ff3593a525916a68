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

    /// Sets the system's clock to the time that it shows, if that is permitted. It loses the time between two calls.
    private static func setSystemClock() -> Bool {
        var time = timespec()
        return clock_gettime(CLOCK_REALTIME, &time) == 0 && clock_settime(CLOCK_REALTIME, &time) == 0
    }

    @Test("meets the requirements", arguments: subjects, DriverCheck.all)
    func conforms(_ driver: DriverSubject, to requirement: DriverCheck) throws {
        try requirement.check(driver)
    }
}
