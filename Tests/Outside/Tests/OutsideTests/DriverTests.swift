import PollDriver
@_spi(Ports) import RunLoopConformance
import Testing

@Suite("A driver from outside", .timeLimit(.minutes(5)))
struct DriverTests {
    private static let poll = DriverSubject("poll") { body in
        try body(PollDriver(waker: try WakePipe()), PollWorld.shared)
    }

    @Test("meets the requirements", arguments: DriverCheck.all)
    func conforms(to requirement: DriverCheck) throws {
        try requirement.check(Self.poll)
    }
}
