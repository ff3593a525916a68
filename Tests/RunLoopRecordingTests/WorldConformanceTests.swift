@_spi(Ports) import RunLoopConformance
@_spi(Ports) import RunLoopCore
import RunLoopRecording
import Testing

/// The world of a recorded program, and the same run repeated.
@Suite("The world of a record", .timeLimit(.minutes(15)))
struct WorldConformanceTests {
    private static let recorded = WorldSubject("recorded and replayed") { body in
        let record = RecordPath()
        try withRecording(to: record.path, body)
        try withReplay(of: record.path, body)
    }

    @Test("meets the requirements", arguments: WorldCheck.all)
    func conforms(to requirement: WorldCheck) throws {
        try requirement.check(Self.recorded)
    }
}
