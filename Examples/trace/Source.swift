import ArgumentParser
import Glibc
import RunLoopExploration
import RunLoopKit
import RunLoopRecording

/// The contents of a file.
enum Source: CustomStringConvertible {
    case flight(Flight)
    case record(Record)
    case trace(SimulationTrace)
    case finding(Exploration.Finding)

    /// Reads a file of any of these kinds.
    init(contentsOf path: String) throws {
        let start = try Self.start(of: path)
        self =
            switch start {
            case "fault ": .finding(try Exploration.Finding(contentsOf: path))
            case "trace ": .trace(try SimulationTrace(contentsOf: path))
            case "RECORD": .record(try Record(contentsOf: path))
            case "FLIGHT": .flight(try Flight(contentsOf: path))
            default:
                throw ValidationError(
                    "\(path) is none of these: the flight of a loop, the record of a run, the trace of a simulation, a finding"
                )
            }
    }

    /// Returns the six bytes at the beginning of a file.
    private static func start(of path: String) throws -> String {
        guard let file = fopen(path, "r") else { throw ValidationError("\(path): \(String(cString: strerror(errno)))") }
        defer { fclose(file) }
        var bytes = [UInt8](repeating: 0, count: 6)
        let count = fread(&bytes, 1, bytes.count, file)
        guard ferror(file) == 0 else { throw ValidationError("\(path): \(String(cString: strerror(errno)))") }
        return String(decoding: bytes[..<count], as: UTF8.self)
    }

    var description: String {
        switch self {
        case .flight(let flight): "\(flight)"
        case .record(let record): "\(record)"
        case .trace(let trace): trace.fault.map { "\($0)\n\(trace.picture)" } ?? trace.picture
        case .finding(let finding): "\(finding)"
        }
    }

    // MARK: Pictures

    private static let recordHint =
        "a record has calls and no handlers; replay it with a FlightRecorder, and draw the flight"

    private static func flights(of sources: [Source]) throws -> [Flight] {
        try sources.map { source in
            guard case .flight(let flight) = source else {
                throw ValidationError("only flights go together; give one file")
            }
            return flight
        }
    }

    static func timeline(of sources: [Source]) throws -> String {
        guard sources.count == 1 else { return Flight.traceEvents(of: try flights(of: sources)) }
        switch sources[0] {
        case .flight(let flight): return Flight.traceEvents(of: [flight])
        case .record: throw ValidationError(recordHint)
        case .trace(let trace): return trace.traceEvents
        case .finding(let finding): return finding.run.traceEvents
        }
    }

    static func page(of sources: [Source]) throws -> String {
        guard sources.count == 1 else { return FlightPage(flights: try flights(of: sources)).html }
        switch sources[0] {
        case .flight(let flight): return FlightPage(flights: [flight]).html
        case .record: throw ValidationError(recordHint)
        case .trace(let trace): return trace.html
        case .finding(let finding): return finding.html
        }
    }

    var svg: String {
        get throws {
            switch self {
            case .flight(let flight): FlightChart(flight).svg
            case .record: throw ValidationError(Self.recordHint)
            case .trace(let trace): trace.svg
            case .finding(let finding): finding.svg
            }
        }
    }

    // MARK: Lists

    func printEvents(ofThread thread: Int?) throws {
        if case .record(let record) = self {
            let thread = thread ?? 0
            guard record.threads[thread] != nil else { throw ValidationError("the record has no thread \(thread)") }
            for event in record.events(ofThread: thread) { print(event) }
            return
        }
        guard thread == nil else { throw ValidationError("--thread chooses a thread of a record") }
        switch self {
        case .flight(let flight):
            for entry in flight.entries { print(entry.line) }
        case .trace(let trace): print(trace)
        case .finding(let finding): print(finding.run)
        case .record: break
        }
    }

    func printClients() throws {
        guard case .record(let record) = self else { throw ValidationError("--clients are those of a record") }
        for client in record.clients {
            let sent = client.steps.reduce(0) { sum, step in
                if case .send(let bytes) = step.action { sum + bytes.count } else { sum }
            }
            print("\(client.begin) \(client.peer) sent \(sent) bytes, received \(client.answerCount)")
        }
    }
}

extension Flight.Entry {
    /// The event in words, with its time, indented by its depth.
    var line: String {
        let indent = String(repeating: "  ", count: depth)
        func name(_ handler: Flight.Handler?, or other: String) -> String { handler.map { "\($0)" } ?? other }
        let text =
            switch event {
            case .runBegan(let mode): "run in \(mode)"
            case .runEnded(let mode): "end of the run in \(mode)"
            case .callBegan(let handler, _): name(handler, or: "a handler without a name")
            case .callHas(let number, let thread):
                "is effect \(number)" + (thread.map { ", from the thread \"\($0)\"" } ?? "")
            case .callEnded(let duration): "ended after \(duration)"
            case .slept(let duration, let reason): "slept for \(duration), woken by \(reason)"
            case .caused(let handler, let number):
                "has effect \(number): \(name(handler, or: "a handler without a name"))"
            case .moved(let connection, let descriptor, let received, let sent):
                "received \(received) bytes, sent \(sent): "
                    + "\(name(connection, or: "a connection without a name")) on descriptor \(descriptor)"
            }
        return "\(time) \(indent)\(text)"
    }
}
