import PollDriver
@_spi(Ports) import RunLoopConformance
@_spi(Ports) import RunLoopKit
import Testing

@Suite("A driver from outside", .timeLimit(.minutes(5)))
struct DriverTests {
    private static let poll = DriverSubject("poll") { body in
        let waker = try WakePipe()
        let driver = PollDriver(waker: waker)
        var lead = Duration.zero
        driver.wallClock = { .nanoseconds(waker.now.nanoseconds) + lead }
        try body(driver, PollWorld.shared) {
            lead += .seconds(1)
            return true
        }
    }

    @Test("meets the requirements", arguments: DriverCheck.all)
    func conforms(to requirement: DriverCheck) throws {
        try requirement.check(Self.poll)
    }
}

@Suite("A world from outside", .timeLimit(.minutes(5)))
struct WorldTests {
    private static let poll = WorldSubject("poll") { body in
        let driver = PollDriver(waker: try WakePipe())
        try body(RunLoop(driver: driver, world: PollWorld.shared, remote: nil))
    }

    @Test("meets the requirements", arguments: WorldCheck.all)
    func conforms(to requirement: WorldCheck) throws {
        try requirement.check(Self.poll)
    }
}
