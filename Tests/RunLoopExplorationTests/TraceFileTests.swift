import Foundation
import RunLoopCore
import RunLoopHosts
import RunLoopKit
import RunLoopUnix
import TestSupport
import Testing

@testable import RunLoopExploration
@_spi(Ports) @testable import RunLoopSimulation

/// A program in which two hosts talk, and a fault occurs if one of them crashes.
private func talk(_ simulation: Simulation) throws {
    let network = SimulatedNetwork(simulation)
    let server = network.addHost("the \"server\"", addresses: ["10.1.0.1"]) { loop in
        _ = try Listener(address: Endpoint("0.0.0.0", port: 7), on: loop) { _, descriptor, _ in
            let connection = Connection(adopting: descriptor, on: loop) { connection, bytes in
                connection.write("ok\r\n")
                return bytes.count
            }
            try? connection.start()
        }
    }
    let answers = Counter()
    network.addHost("client") { loop in
        Connection.connect(to: try Endpoint("10.1.0.1", port: 7), on: loop) { _, bytes in
            answers.add()
            return bytes.count
        } completion: { result in
            guard let connection = try? result.get() else { return }
            try? connection.start()
            connection.write("ask\tme")
        }
    }
    simulation.mayHappen("the server crashes") { server.crash() }
    simulation.advance(by: .seconds(5))
    if answers.value == 0 { throw Broken(description: "no answer\nat all") }
}

/// The finding of one exploration, shared by all tests.
private let found = Result(catching: explore)

private func finding() throws -> Exploration.Finding { try found.get() }

private func explore() throws -> Exploration.Finding {
    var exploration = Exploration(schedules: 5000, limits: Exploration.Limits(reportsDeadlocks: false))
    exploration.longestCauseSearch = .seconds(600)
    exploration.steppingCommand = { "debug \($0.shellWord)" }
    guard case .failed(let finding) = exploration.run(talk) else { throw Broken(description: "nothing was found") }
    return finding
}

@Suite("Files of traces and findings")
struct TraceFileTests {
    @Test("a trace that is written and read is the same, with its fault and its pictures")
    func trace() throws {
        let directory = TemporaryDirectory()
        let exploration = Exploration(limits: Exploration.Limits(reportsDeadlocks: false))
        let usual = exploration.trace(ScheduleToken(seed: 3), talk)
        #expect(usual.fault == nil && "\(usual)".contains("client: 4 bytes \"ok\\r\\n\" from"), "\(usual)")
        let failing = exploration.trace(try finding().token, talk)
        #expect(failing.fault?.description == "no answer\nat all")
        for trace in [usual, failing] {
            try trace.write(to: directory["trace"])
            let read = try SimulationTrace(contentsOf: directory["trace"])
            #expect(read.trace == trace.trace && read.fault == trace.fault && read.token == trace.token)
            #expect(!read.isCut && "\(read)" == "\(trace)")
            #expect(read.picture == trace.picture && read.svg == trace.svg && read.html == trace.html)
        }
    }

    @Test("a finding that is written and read has the same report, page and runs")
    func findings() throws {
        let directory = TemporaryDirectory()
        let finding = try finding()
        try finding.write(to: directory["finding"])
        let read = try Exploration.Finding(contentsOf: directory["finding"])
        #expect("\(read)" == "\(finding)" && read.html == finding.html && read.svg == finding.svg)
        #expect(read.first == finding.first && read.schedules == finding.schedules && read.marks == finding.marks)
        #expect(read.passingRun?.trace == finding.passingRun?.trace && read.cause == finding.cause)
        #expect("\(read)".contains("To step through it: debug"))
        try read.write(to: directory["again"])
        #expect(
            try String(contentsOfFile: directory["again"], encoding: .utf8)
                == String(contentsOfFile: directory["finding"], encoding: .utf8))
    }

    @Test("the findings of a campaign are read with their runs")
    func campaign() throws {
        let directory = TemporaryDirectory()
        var exploration = Exploration(schedules: 20, limits: Exploration.Limits(reportsDeadlocks: false))
        exploration.longestCauseSearch = .zero
        let campaign = Campaign("talk", of: exploration, in: directory["campaign"])
        let arguments =
            [CommandLine.arguments[0], "--testing-library", "swift-testing"] + [
                "--filter", "TraceFileTests/campaign\\(",
            ]
        let result = try campaign.run(arguments: arguments, talk)
        let file = try #require(result.findings.first?.file)
        let finding = try Exploration.Finding(contentsOf: file)
        #expect(finding.token == result.findings[0].token && finding.fault == result.findings[0].fault)
        #expect(finding.run.trace.entries.count > 10)
        // The file stays as it is when another campaign finds the same.
        let text = try String(contentsOfFile: file, encoding: .utf8)
        _ = try campaign.run(arguments: arguments, talk)
        #expect(try String(contentsOfFile: file, encoding: .utf8) == text)
    }

    @Test("damaged files are refused, or read and drawn: none ends the process", arguments: seeds(usually: 3))
    func damage(seed: UInt64) throws {
        let directory = TemporaryDirectory()
        let finding = try finding()
        try finding.write(to: directory["finding"])
        try finding.run.write(to: directory["trace"])
        var random = SeededGenerator(seed: seed)
        var refused = 0
        for name in ["finding", "trace"] {
            let bytes = Array(try Data(contentsOf: URL(fileURLWithPath: directory[name])))
            for _ in 0..<100 {
                var damaged = bytes
                for _ in 0..<Int.random(in: 1...4, using: &random) {
                    let place = Int.random(in: damaged.indices, using: &random)
                    switch Int.random(in: 0..<4, using: &random) {
                    case 0: damaged[place] = UInt8.random(in: 0...255, using: &random)
                    case 1: damaged.removeSubrange(place..<min(damaged.count, place + 7))
                    case 2: damaged = Array(damaged[..<max(1, place)])
                    default: damaged.insert(contentsOf: "9\t-\n".utf8, at: place)
                    }
                }
                try Data(damaged).write(to: URL(fileURLWithPath: directory["damaged"]))
                do {
                    if name == "trace" {
                        let trace = try SimulationTrace(contentsOf: directory["damaged"])
                        _ = (trace.picture, trace.svg, trace.html, trace.traceEvents, "\(trace)")
                    } else {
                        let read = try Exploration.Finding(contentsOf: directory["damaged"])
                        _ = ("\(read)", read.svg, read.html, read.run.traceEvents)
                    }
                } catch {
                    #expect(error == .notATrace(directory["damaged"]))
                    refused += 1
                }
            }
        }
        #expect(refused > 20, "seed \(seed)")
    }

    @Test("a file that is missing, or is something else, has its name in the error")
    func errors() throws {
        let directory = TemporaryDirectory()
        try Data("fault nothing".utf8).write(to: URL(fileURLWithPath: directory["other"]))
        for read in [
            { _ = try SimulationTrace(contentsOf: $0) }, { _ = try Exploration.Finding(contentsOf: $0) },
        ] as [(String) throws -> Void] {
            #expect(throws: TraceFileError.file(directory["none"], errno: ENOENT)) { try read(directory["none"]) }
            #expect(throws: TraceFileError.file(directory[""], errno: EISDIR)) { try read(directory[""]) }
            #expect(throws: TraceFileError.notATrace(directory["other"])) { try read(directory["other"]) }
        }
        let trace = Exploration().trace(ScheduleToken(seed: 0)) { $0.note("a") }
        #expect(throws: TraceFileError.file(directory["none/file"], errno: ENOENT)) {
            try trace.write(to: directory["none/file"])
        }
    }

    @Test("the timeline has a track for each lane, its life around its events, and an arrow for each message")
    func timeline() throws {
        let trace = try finding().run
        let object = try JSONSerialization.jsonObject(with: Data(trace.traceEvents.utf8)) as? [String: Any]
        let events = try #require(object?["traceEvents"] as? [[String: Any]])
        func all(_ kind: String) -> [[String: Any]] { events.filter { $0["ph"] as? String == kind } }
        let names = all("M").compactMap { ($0["args"] as? [String: Any])?["name"] as? String }
        #expect(Set(["the \"server\"", "client", "departures"]).isSubset(of: names), "\(names)")
        let messages = trace.trace.events.filter { if case .message = $0.kind { true } else { false } }
        #expect(!messages.isEmpty)
        #expect(all("s").count == messages.count && all("f").count == messages.count)
        let lives = all("X").filter { $0["cat"] as? String == "life" }
        #expect(lives.count >= 3)
        // Arrows lead to slices.
        let slices = Set(all("X").map { "\($0["tid"]!) \($0["ts"]!)" })
        for end in all("s") + all("f") { #expect(slices.contains("\(end["tid"]!) \(end["ts"]!)")) }
        #expect(all("X").contains { ($0["name"] as? String)?.contains("the server crashes") == true })
        let bytes = try #require(all("C").last)
        #expect(((bytes["args"] as? [String: Any])?["bytes"] as? Int ?? 0) > 0)
    }
}
