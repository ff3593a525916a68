import Glibc
import RunLoopExploration
import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

private func arguments(for test: String) -> [String] {
    [CommandLine.arguments[0], "--testing-library", "swift-testing", "--filter", "StepperTests/\(test)\\("]
}

/// The program of the page *Step through a schedule*.
private func startUp(_ simulation: Simulation) throws {
    let loop = simulation.loop
    var settings: String?
    var isMissing = false
    loop.task(name: "reader") {
        for _ in 0..<2 { await Task.yield() }
        settings = "fast"
    }
    loop.task(name: "worker") {
        for _ in 0..<4 { await Task.yield() }
        isMissing = settings == nil
    }
    simulation.runUntilIdle()
    if isMissing { throw Broken(description: "the worker found no settings") }
}

private let failing = ScheduleToken("0:reader@1>worker")!

extension Exploration.Stepper {
    /// The times and words of all places.
    fileprivate var places: [String] {
        let former = position
        defer { go(to: former) }
        return (0...count).map { position in
            go(to: position)
            return "\(place.time) \(place.words)"
        }
    }

    /// Goes to the first place that fulfills a condition.
    ///
    /// - Returns: `true` if there is one.
    fileprivate func goToPlace(_ isTarget: (Place) -> Bool) -> Bool {
        go(to: 0)
        while !isTarget(place), !isAtEnd { goForward() }
        return isTarget(place)
    }

    /// The answers to commands.
    fileprivate func answers(to commands: String...) -> [String] {
        var (rest, answers) = (commands[...], [String]())
        talk(reading: { rest.popFirst() }, printing: { answers.append($0) })
        return answers
    }
}

@Suite("Steps through a schedule")
struct StepperTests {
    private func stepper(
        _ token: ScheduleToken = ScheduleToken(seed: 0), _ body: @escaping (Simulation) throws -> Void = startUp
    ) -> Exploration.Stepper {
        Exploration.Stepper(Exploration(), token, body)
    }

    // MARK: Steps

    @Test("forward and back lead to the same places")
    func forwardAndBack() {
        let stepper = stepper(failing)
        var forward = ["\(stepper.place)"]
        while !stepper.isAtEnd {
            stepper.goForward()
            forward.append("\(stepper.place)")
        }
        #expect(stepper.position == stepper.count && forward.count == stepper.count + 1)
        #expect(forward.last?.hasSuffix("the end: the worker found no settings") == true)
        var back = ["\(stepper.place)"]
        while stepper.position > 0 {
            stepper.goBack()
            back.append("\(stepper.place)")
        }
        #expect(back.reversed() == forward)
        stepper.goBack()
        #expect(stepper.position == 0)
    }

    @Test("next and previous choices and departures are found, and the fault is at the end")
    func jumps() {
        let stepper = stepper(failing)
        #expect(stepper.goToNextDeparture())
        let departure = stepper.place
        #expect(departure.choice?.place == "reader" && departure.choice?.step == 1)
        #expect(departure.choice.map { $0.name(of: $0.chosen) } == "worker")
        #expect(!stepper.goToNextDeparture() && stepper.place == departure)
        #expect(stepper.goToPreviousChoice() && stepper.place.choice?.isDeparture == false)
        #expect(stepper.goToNextChoice() && stepper.place == departure)
        stepper.goToEnd()
        #expect(stepper.isAtEnd && stepper.fault?.description == "the worker found no settings")
        #expect(stepper.goToPreviousDeparture() && stepper.place == departure)
        #expect(!stepper.goToPreviousDeparture() && stepper.place == departure)
    }

    @Test("a program without a choice has steps and an end")
    func noChoice() {
        let stepper = stepper { simulation in
            simulation.loop.perform(afterDelay: .seconds(1)) {}
            simulation.runUntilIdle()
        }
        #expect(stepper.fault == nil && stepper.count > 0)
        #expect(!stepper.goToNextChoice() && !stepper.goToNextDeparture() && !stepper.goToPreviousChoice())
        #expect(throws: Exploration.Stepper.DepartureError.self) { try stepper.depart(to: 0) }
        stepper.goToEnd()
        #expect("\(stepper.place)".hasSuffix("1.000000000  the end: the run has passed"))
        #expect(self.stepper { _ in }.fault == nil)
    }

    // MARK: Departing

    @Test("a departure leads to another outcome, and back to the usual one")
    func depart() throws {
        let stepper = stepper()
        #expect(stepper.fault == nil)
        try #require(stepper.goToPlace { $0.choice?.place == "reader" && $0.choice?.step == 1 })
        let (position, before) = (stepper.position, stepper.places.prefix(stepper.position))
        let choice = try #require(stepper.place.choice)
        let worker = try #require(choice.options.first { choice.name(of: $0) == "worker" })
        try stepper.depart(to: worker)
        #expect(stepper.token == failing && stepper.fault?.description == "the worker found no settings")
        #expect(stepper.position == position && stepper.place.choice?.isDeparture == true)
        #expect(before == stepper.places.prefix(position))
        let usual = try #require(stepper.place.choice?.usual)
        try stepper.depart(to: usual)
        #expect(stepper.token == ScheduleToken(seed: 0) && stepper.fault == nil)
    }

    @Test("a departure keeps the earlier ones and drops the later ones")
    func keepsEarlier() throws {
        func program(_ simulation: Simulation) {
            for name in ["a", "b", "c"] { _ = simulation.choice(name, of: [1, 2, 3]) }
        }
        let stepper = stepper(try #require(ScheduleToken("0:a@0=1;b@0=1;c@0=1")), program)
        #expect(stepper.goToNextDeparture() && stepper.goToNextDeparture())
        #expect(stepper.place.choice?.place == "b")
        try stepper.depart(to: 2)
        #expect("\(stepper.token)" == "0:a@0=1;b@0=2")
        #expect(throws: Exploration.Stepper.DepartureError.self) { try stepper.depart(to: 3) }
        #expect("\(stepper.token)" == "0:a@0=1;b@0=2")
    }

    @Test("a program that differs each time is reported, and the place stays")
    func difference() {
        var run = 0
        let stepper = stepper { simulation in
            run += 1
            simulation.note("run \(run)")
            _ = simulation.choice("number", of: [1, 2])
        }
        #expect(stepper.goToNextChoice())
        #expect(stepper.answers(to: "d 1").last?.contains("does not follow from the seed") == true)
        #expect(stepper.token == ScheduleToken(seed: 0))
    }

    // MARK: Traps

    @Test("the place of a trap is reached, looked at, and departed from")
    func trap() throws {
        func program(_ simulation: Simulation) throws {
            do { try startUp(simulation) } catch { fatalError("\(error)") }
        }
        let made = Exploration.Stepper(
            Exploration(), failing, inProcessesFor: "trap", arguments: arguments(for: "trap"), program)
        guard let stepper = made else { return }
        #expect(stepper.fault?.kind == .trap)
        stepper.goToEnd()
        #expect(stepper.place.words.contains("the worker found no settings"))
        #expect(!stepper.lookAround().isEmpty)
        #expect(stepper.goToPreviousDeparture())
        #expect(stepper.lookAround().contains("  task worker can continue"), "\(stepper.lookAround())")
        try stepper.depart(to: try #require(stepper.place.choice?.usual))
        #expect(stepper.fault == nil && stepper.token.departures.isEmpty)
    }

    @Test("a run that does not end has steps up to there")
    func hang() throws {
        let limits = Exploration.Limits(longestRun: .milliseconds(500))
        let made = Exploration.Stepper(
            Exploration(limits: limits), ScheduleToken(seed: 0), inProcessesFor: "hang",
            arguments: arguments(for: "hang")
        ) { simulation in
            simulation.note("before")
            while true { usleep(1000) }
        }
        guard let stepper = made else { return }
        #expect(stepper.fault?.kind == .hang && stepper.places.contains { $0.hasSuffix("main: before") })
    }

    // MARK: The threads

    @Test("a place shows the time, the threads, and the tasks that can continue")
    func look() throws {
        let stepper = stepper { simulation in
            let worker = LoopThread(name: "worker") { $0.perform(afterDelay: .seconds(3)) {} }
            simulation.loop.task(name: "sleeper") { try? await simulation.loop.clock.sleep(for: .seconds(1)) }
            simulation.loop.task(name: "other") { await Task.yield() }
            simulation.runUntilIdle()
            worker.stop()
        }
        try #require(stepper.goToPlace { $0.choice?.place == "sleeper" })
        let lines = stepper.lookAround()
        #expect(lines.contains("main runs"), "\(stepper.place) \(lines)")
        #expect(lines.contains("  task sleeper can continue"))
        try #require(stepper.goToPlace { $0.time.nanoseconds == 1_000_000_000 })
        let later = stepper.lookAround()
        #expect(later.contains { $0.hasPrefix("worker waits until 3.000000000") }, "\(later)")
        #expect(stepper.lookAround() == later)
    }

    @Test("the threads of each place can be listed")
    func looks() {
        let stepper = stepper(failing)
        for position in 0...stepper.count {
            stepper.go(to: position)
            #expect(!stepper.lookAround().isEmpty, "\(stepper.place)")
            #expect(stepper.picture.contains("◀ here"), "\(stepper.picture)")
        }
    }

    // MARK: Commands

    @Test("each command is answered, and unknown commands are refused")
    func commands() {
        let answers = stepper(failing).answers(
            to: "n", "x", "d 0", "t", "?", "x", "X", "g 99", "hello", "g", "n n n", "")
        #expect(answers[0] == "0:reader@1>worker  the worker found no settings")
        #expect(answers[1] == "? lists the commands")
        #expect(answers[3].hasPrefix("1 of "))
        #expect(answers[5].hasPrefix("0:  the run has passed\n"))
        #expect(answers[6] == "0:")
        #expect(answers[7].hasPrefix("n, b "))
        #expect(answers[8] == "no departure comes after this place")
        #expect(answers[9] == "no departure comes before this place")
        #expect(answers[10].hasPrefix("the steps are 0 to "))
        for (answer, command) in zip(answers[11...13], ["hello", "g", "n n n"]) {
            #expect(answer == "no command is \"\(command)\"; ? lists them")
        }
        #expect(answers.count == 15)
    }

    @Test("the console of the stepper ends at q and at the end of the input")
    func end() {
        #expect(stepper().answers(to: "q", "n").count == 3)
        #expect(stepper().answers().count == 3)
        #expect(stepper().answers(to: "f", "n").last?.hasPrefix("this is the end\n") == true)
        #expect(stepper().answers(to: "b").last?.hasPrefix("this is the beginning\n") == true)
    }

    @Test("a token that does not fit is reported with its first departure that did not happen")
    func missing() throws {
        let token = try #require(ScheduleToken("0:reader@1>worker;writer@3>worker;reader@9>worker"))
        let stepper = self.stepper(token)
        #expect(stepper.missing.map { "\($0)" } == ["writer@3>worker", "reader@9>worker"])
        #expect(stepper.answers()[1].hasPrefix("departures that have not happened: 2 of 3, first writer@3>worker; "))
        #expect(self.stepper(failing).missing.isEmpty)
    }
}
