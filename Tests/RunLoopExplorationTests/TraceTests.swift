import RunLoopCore
import RunLoopHosts
import RunLoopKit
import RunLoopUnix
import TestSupport
import Testing

@testable import RunLoopExploration
@_spi(Ports) @testable import RunLoopSimulation

private func arguments(for test: String) -> [String] {
    [CommandLine.arguments[0], "--testing-library", "swift-testing", "--filter", "TraceTests/\(test)\\("]
}

private func run(
    with token: ScheduleToken = ScheduleToken(seed: 0), recording: Recording = .trace(),
    _ body: (Simulation) throws -> Void
) -> Run {
    withoutActuallyEscaping(body) { body in
        let exploration = Exploration()
        return LocalRunner(portfolio: exploration.portfolio, limits: exploration.limits, body: body)
            .replay(token, recording)
    }
}

/// A program of two tasks, one of which reads the other's writes.
private func race(_ simulation: Simulation) throws {
    var value = 0
    simulation.loop.task(name: "writer") {
        await Task.yield()
        value = 1
    }
    simulation.loop.task(name: "reader") {
        for _ in 0..<2 { await Task.yield() }
        if value == 0 { simulation.note("nothing was written") }
    }
    simulation.runUntilIdle()
    if value == 0 { throw Broken(description: "nothing was written") }
}

extension Trace {
    /// The events alone, in order.
    var events: some Sequence<TracedEvent> { entries.lazy.compactMap(\.event) }
}

@Suite("The trace of a run")
struct TraceTests {
    @Test("a choice stands among the events, right before the step that follows from it")
    func order() throws {
        let trace = run(race).trace
        for (index, entry) in trace.entries.enumerated() {
            guard case .choice(let choice) = entry, choice.kind == .task else { continue }
            guard case .event(let event) = trace.entries[index + 1] else {
                Issue.record("\(trace)")
                continue
            }
            #expect(event.lane == choice.name(of: choice.chosen) && event.words.hasPrefix("step "))
            #expect(choice.names.sorted() == ["reader", "writer"] && choice.chosen == choice.usual)
        }
        #expect(trace.choices.contains { $0.kind == .task && $0.place == "writer" && $0.step == 1 })
        #expect(trace.entries.count > trace.choices.count)
    }

    @Test("a run with the same token has the same trace, and another token has another one from its departure on")
    func token() throws {
        let token = try #require(ScheduleToken("0:writer@1>reader"))
        let (usual, other) = (run(race).trace, run(with: token, race).trace)
        #expect(run(race).trace == usual)
        let place = try #require(other.entries.indices.first { other.entries[$0] != usual.entries[$0] })
        guard case .choice(let choice) = other.entries[place] else {
            Issue.record("the runs differ at \(other.entries[place])")
            return
        }
        #expect(choice.isDeparture && choice.place == "writer" && choice.step == 1)
        #expect(choice.name(of: choice.chosen) == "reader")
    }

    @Test("only a run whose trace is asked for has one")
    func notAsked() {
        #expect(run(recording: .none, race).trace.entries.isEmpty)
    }

    @Test("a run in another process has the same trace, and one that traps has a trace up to there")
    func process() throws {
        func body(_ simulation: Simulation) throws {
            try race(simulation)
            if simulation.choice("the end", of: ["good", "bad"]) == "bad" { fatalError("the end is bad") }
        }
        let exploration = Exploration()
        let made = exploration.makeProcesses(for: "trace", arguments(for: "process"), body)
        guard var runner = made else { return }
        let (here, there) = (run(body).trace, runner.replay(ScheduleToken(seed: 0), .trace()).trace)
        #expect(here == there)
        let trapped = runner.replay(try #require(ScheduleToken("0:the end@0=1")), .trace())
        #expect(trapped.fault?.kind == .trap)
        #expect(trapped.trace.choices.dropLast() == here.choices.dropLast())
        #expect(trapped.trace.choices.last?.names == ["good", "bad"])
    }

    @Test("an event has its time, its lane, and the place in the program where its item was made")
    func places() throws {
        let line = #line + 2
        let trace = run { simulation in
            simulation.loop.perform(afterDelay: .seconds(2)) { simulation.note("it is\tlate") }
            simulation.runUntilIdle()
        }.trace
        let call = try #require(trace.events.first { $0.kind == .call })
        #expect(call.date == RunLoop.Instant(nanoseconds: 2_000_000_000) && call.lane == "main")
        #expect(call.place?.file.hasSuffix("TraceTests.swift") == true && call.place?.line == line)
        #expect(trace.events.contains { $0.kind == .note && $0.words == "it is late" })
    }

    @Test("faults and possibilities have words, and no two options of a place have the same name")
    func names() throws {
        let trace = run { simulation in
            _ = simulation.choice("the answer", of: ["comes", "is lost", "comes", "comes"])
            _ = simulation.mayHappen("the link is cut")
            let host = SimulatedNetwork(simulation).addHost("store") { loop in
                loop.perform {
                    guard let file = try? Disk.current.open("/log", .writing) else { return }
                    _ = try? file.write([1, 2, 3, 4], at: 0)
                }
            }
            host.disk.install([], at: "/log")
            host.callsMayFail(with: [.ioErrors, .shortWrites])
            simulation.runUntilIdle()
        }.trace
        let choices = trace.choices
        #expect(choices.first { $0.place == "the answer" }?.names == ["comes", "is lost", "comes (2)", "comes (3)"])
        #expect(choices.first { $0.place == "the link is cut" }?.names == ["nothing happens", "the link is cut"])
        let failure = try #require(choices.first { $0.place.hasSuffix("write /log fails with EIO") })
        #expect(failure.kind == .fault && failure.names == ["nothing happens", failure.place])
        let short = try #require(choices.first { $0.place.hasSuffix("write /log is short") })
        #expect(short.names == ["4 of 4 bytes", "1 of 4 bytes", "2 of 4 bytes", "3 of 4 bytes"])
        for choice in choices { #expect(Set(choice.names).count == choice.names.count, "\(choice)") }
    }

    @Test("tasks have different names, even if one has the name that another one gets from its starter")
    func taskNames() {
        let trace = run { simulation in
            for name in ["a", "a 2", "a", "a"] { simulation.loop.task(name: name) { await Task.yield() } }
            simulation.runUntilIdle()
        }.trace
        #expect(trace.choices.allSatisfy { Set($0.names).count == $0.names.count })
        #expect(trace.choices.first { $0.kind == .task }?.names == ["a", "a 2", "a 3", "a 4"])
    }

    @Test("an entry is read from its line", arguments: TracedEvent.samples.map { Trace.Entry.event($0) } + [.sample])
    func lines(entry: Trace.Entry) {
        #expect(Trace.Entry("\(entry)") == entry)
        #expect(Trace.Entry("\(entry)".replacing("\t", with: " ")) == nil)
    }
}

extension TracedEvent {
    fileprivate static var samples: [TracedEvent] {
        let kinds: [Kind] = [
            .began, .ended, .renamed("b"), .note, .call, .ignored, .message(.bytes(3), from: "c"),
            .message(.lost(0), from: "c"), .message(.end, from: "c"),
        ]
        return kinds.map { kind in
            TracedEvent(
                date: RunLoop.Instant(nanoseconds: 7), lane: "a", thread: kind == .note ? "worker" : nil, kind: kind,
                words: "the words", place: kind == .call ? TracedEvent.Place(file: "App/main.swift", line: 3) : nil)
        }
    }
}

extension Trace.Entry {
    fileprivate static var sample: Trace.Entry {
        .choice(
            Trace.Choice(
                date: RunLoop.Instant(nanoseconds: 7), kind: .fault, place: "a", step: 2, names: ["nothing", "a"],
                range: 0...1, usual: 0, chosen: 1))
    }
}
