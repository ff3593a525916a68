import ExampleTestSupport
import Glibc
import RunLoopExploration
import RunLoopKit
import RunLoopRecording
import RunLoopSimulation
import Testing

@testable import runloop_trace

private struct Wrong: Error {}

@Suite("Files of any kind")
struct SourceTests {
    private let directory = TemporaryDirectory()

    @Test("the flight of a simulated loop is read, listed, and drawn")
    func flight() throws {
        try withSimulation { simulation in
            let recorder = try FlightRecorder(simulation.loop)
            simulation.loop.perform(afterDelay: .seconds(1)) {}
            simulation.advance(by: .seconds(2))
            try recorder.memory.write(to: directory["flight"])
        }
        let source = try Source(contentsOf: directory["flight"])
        guard case .flight = source else { throw Wrong() }
        #expect(try Source.timeline(of: [source, source]).contains("traceEvents"))
        #expect(try Source.page(of: [source]).contains("<svg") && source.svg.hasPrefix("<svg"))
    }

    @Test("a trace and a finding are read and drawn, and do not go together")
    func runs() throws {
        let exploration = Exploration(schedules: 100)
        try exploration.trace(ScheduleToken(seed: 1)) { $0.note("hello") }.write(to: directory["trace"])
        let result = exploration.run { simulation in
            if simulation.mayHappen("it rains") { throw Wrong() }
        }
        guard case .failed(let finding) = result else { throw Wrong() }
        try finding.write(to: directory["finding"])
        let (trace, found) = (try Source(contentsOf: directory["trace"]), try Source(contentsOf: directory["finding"]))
        guard case .trace = trace, case .finding = found else { throw Wrong() }
        #expect("\(trace)".contains("hello") && "\(found)" == "\(finding)")
        for source in [trace, found] {
            #expect(try Source.timeline(of: [source]).contains("traceEvents"))
            #expect(try Source.page(of: [source]).contains("<svg") && source.svg.hasPrefix("<svg"))
        }
        #expect(throws: (any Error).self) { try Source.timeline(of: [trace, found]) }
    }

    @Test("a record is read, and has no picture")
    func record() throws {
        try withRecording(to: directory["record"]) { $0.run(until: $0.now + .milliseconds(1)) }
        let source = try Source(contentsOf: directory["record"])
        guard case .record = source else { throw Wrong() }
        #expect("\(source)".contains("thread 0, main") && "\(source)".contains("the record is complete"))
        for draw in [{ try Source.timeline(of: [source]) }, { try Source.page(of: [source]) }, { try source.svg }] {
            #expect(throws: (any Error).self) { try draw() }
        }
    }

    @Test("a file of another kind, and one that is missing, are named")
    func others() throws {
        directory.write("hello", to: "text")
        directory.write("", to: "empty")
        for name in ["text", "empty", "none"] {
            do {
                _ = try Source(contentsOf: directory[name])
                Issue.record("\(name) was read")
            } catch {
                #expect("\(error)".contains(directory[name]))
            }
        }
    }
}
