@_spi(Ports) import RunLoopConformance
@_spi(Ports) import RunLoopCore
import RunLoopSimulation
@_spi(Ports) import RunLoopUnix
import TestSupport
import Testing

/// Each fault is named by the requirement that finds it.
@Suite("Requirements find planted faults", .timeLimit(.minutes(5)))
struct PlantedFaultTests {
    @Test("of a stream", arguments: FaultyStream.Fault.allCases)
    func stream(fault: FaultyStream.Fault) throws {
        let subject = StreamSubject("with a fault") { simulation in
            let (one, other) = makeSockets()
            return (
                FaultyStream(over: simulation.loop.makeStream(reading: one, writing: one), fault),
                FaultyStream(over: simulation.loop.makeStream(reading: other, writing: other), fault)
            )
        }
        let requirement = try #require(StreamCheck.all.first { $0.testDescription == fault.rawValue })
        withKnownIssue { try requirement.check(subject) }
    }

    @Test("of a driver", arguments: FaultyDriver.Fault.allCases)
    func driver(fault: FaultyDriver.Fault) throws {
        let subject = DriverSubject("with a fault", isVirtual: true) { body in
            try withSimulation { simulation in
                try body(FaultyDriver(over: simulation.loop.driver, fault), simulation.loop.world) {
                    simulation.wallTime = simulation.wallTime + .seconds(1)
                    return true
                }
            }
        }
        let requirement = try #require(DriverCheck.all.first { $0.testDescription == fault.rawValue })
        withKnownIssue { try requirement.check(subject) }
    }

    @Test("of a world", arguments: FaultyWorld.Fault.allCases)
    func world(fault: FaultyWorld.Fault) throws {
        let subject = WorldSubject("with a fault") { try FaultyWorld.run(fault, $0) }
        let requirement = try #require(WorldCheck.all.first { $0.testDescription == fault.rawValue })
        withKnownIssue { try requirement.check(subject) }
    }
}
