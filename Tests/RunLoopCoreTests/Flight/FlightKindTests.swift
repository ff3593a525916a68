import Testing

@testable import RunLoopCore

@Suite("Kinds in flights")
struct FlightKindTests {
    @Test("each kind of handler is read as it was written")
    func codes() {
        for kind in RunLoop.ItemKind.allCases { #expect(RunLoop.ItemKind.allCases[Int(kind.code)] == kind) }
    }
}
