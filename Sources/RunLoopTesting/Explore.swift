// Swift Testing has no library that can be linked statically.
#if canImport(Testing)
internal import Glibc
@_spi(Ports) internal import RunLoopCore
public import RunLoopExploration
@_spi(Ports) public import RunLoopSimulation
public import Testing

/// Explores a program in a test by running it with many legal schedules until a run fails.
///
/// ```swift
/// @Test func nothingIsOverdrawn() async {
///     await explore { simulation in
///         let account = Account(balance: 100)
///         for _ in 0..<2 { Task { await account.withdraw(80) } }
///         simulation.runUntilIdle()
///         #expect(account.lowest >= 0)
///     }
/// }
/// ```
///
/// A run fails if an expectation fails, if the program throws an error or traps, or with any other `Exploration.Fault`.
/// The test then has one issue with the fault, the shortest schedule found, a picture of its run, and a token. With the
/// option `--attachments-path`, the test program writes the files `finding.html`, `token.txt` and `trace.txt` into that
/// directory. With the token in the environment variable `RUNLOOP_REPLAY`, the test runs that schedule alone, in its
/// own process: in a debugger, for example. ``replay(_:_:sourceLocation:)`` keeps that schedule as a test. With the
/// token in `RUNLOOP_STEP`, the test steps through it by commands: see `Exploration.Stepper`.
///
/// With the name of a directory in `RUNLOOP_CAMPAIGN`, each exploration is a `Campaign` with its own subdirectory.
/// `RUNLOOP_CAMPAIGN_SECONDS` limits the duration of each, with any number of schedules.
///
/// Swift's default executor and the main actor are parts of each simulation. The schedules run in another process,
/// which executes this test alone; outside of tests they run in this process, where a trap ends the program. The
/// arguments of a test must have the same description in every process, which a `Set`, for example, does not.
///
/// Expectations count on the test's thread and in tasks started from it. In other threads and in detached tasks, throw
/// an error, or keep the failure until the end of the program.
///
/// - Parameters:
///   - exploration: the number of schedules, the duration, and the seed; by default a thousand schedules.
///   - marks: marks each of which at least one schedule must meet; by default none. See `Simulation.sometimes(_:if:)`.
///   - sourceLocation: the place where the issue is reported.
///   - program: the program to explore. It is called once for each schedule, and must do the same each time except for
///     the choices of its simulation.
public func explore(
    _ exploration: Exploration = Exploration(), requiring marks: [String] = [],
    sourceLocation: SourceLocation = #_sourceLocation, _ program: @escaping @Sendable (Simulation) throws -> Void
) async {
    if await isOneSchedule(of: exploration, program, sourceLocation) { return }
    let test = Test.current
    let name = name(at: sourceLocation, in: Test.Case.current)
    var exploration = exploration
    if exploration.progress == nil { exploration.progress = tell }
    if exploration.steppingCommand == nil { exploration.steppingCommand = steppingCommand }
    let campaign = test.flatMap { makeCampaign(of: exploration, requiring: marks, in: $0, Test.Case.current) }
    let failure = await interceptingIssues(of: program, sourceLocation) { [exploration] body -> Failure? in
        guard let test, let campaign else {
            var met = Simulation.Marks()
            let result =
                if let test, let name {
                    exploration.run(inProcessesFor: name, arguments: arguments(for: test), marks: &met, body)
                } else {
                    exploration.run(marks: &met, body)
                }
            switch result {
            case .failed(let finding): return Failure(reason: "\(finding)", finding: finding)
            case .passed(let schedules):
                let missing = met.missing(of: marks)
                guard !missing.isEmpty else { return nil }
                return Failure(reason: Simulation.Marks.sentence(missing, in: "\(schedules) schedules"))
            }
        }
        do throws(CampaignError) {
            let result = try campaign.run(arguments: arguments(for: test), body)
            return result.hasPassed ? nil : Failure(reason: "\(result)")
        } catch {
            return Failure(reason: "\(error)")
        }
    }
    (failure ?? nil)?.record(at: sourceLocation)
}

/// Runs schedules of a program, whose issues fail the schedule instead of the test. Returns `nil` if there is no
/// result, after recording the reason.
private func interceptingIssues<Result: Sendable>(
    of program: @escaping @Sendable (Simulation) throws -> Void, _ sourceLocation: SourceLocation,
    _ run: @escaping @Sendable (_ body: (Simulation) throws -> Void) -> Result
) async -> Result? {
    let issues = Locked<[Issue]>([])
    let interception = IssueHandlingTrait.compactMapIssues { issue in
        issues.withLock { $0.append(issue) }
        return nil
    }
    @Sendable func runIntercepted() -> Result {
        run { simulation in
            issues.withLock { $0 = [] }
            simulation.captureExecutors()
            try program(simulation)
            if let issue = issues.withLock({ $0.first }) { throw Unmet(issue) }
        }
    }
    guard let test = Test.current else { return runIntercepted() }
    let result = Locked<Result?>(nil)
    do {
        try await interception.provideScope(for: test, testCase: Test.Case.current) {
            result.withLock { $0 = runIntercepted() }
        }
    } catch {
        Issue.record(error, sourceLocation: sourceLocation)
    }
    return result.withLock(\.self)
}

/// Explores a small program in a test with all schedules up to a number of departures from the usual one.
///
/// ```swift
/// @Test func nothingIsOverdrawn() async {
///     await explore(.exhaustive(departures: 2)) { transfer($0) }
/// }
/// ```
///
/// If a schedule fails, the test has an issue, as in ``explore(_:requiring:sourceLocation:_:)``, and `RUNLOOP_REPLAY`
/// and `RUNLOOP_STEP` work as they do there. If not all schedules could be tried, a warning states the number that
/// were. Another process runs the schedules.
///
/// - Parameters:
///   - exploration: the number of departures, and the limits.
///   - sourceLocation: the place where the issue is reported.
///   - program: the program to explore. It is called once for each schedule, and must do the same each time except for
///     the choices of its simulation.
public func explore(
    _ exploration: ExhaustiveExploration, sourceLocation: SourceLocation = #_sourceLocation,
    _ program: @escaping @Sendable (Simulation) throws -> Void
) async {
    let single = Exploration(seed: exploration.seed, limits: exploration.limits)
    if await isOneSchedule(of: single, program, sourceLocation) { return }
    let (test, name) = (Test.current, name(at: sourceLocation, in: Test.Case.current))
    var exploration = exploration
    if exploration.steppingCommand == nil { exploration.steppingCommand = steppingCommand }
    let result = await interceptingIssues(of: program, sourceLocation) { [exploration] body in
        guard let test, let name else { return exploration.run(body) }
        return exploration.run(inProcessesFor: name, arguments: arguments(for: test), body)
    }
    switch result {
    case .proven, nil: break
    case .incomplete(let coverage):
        Issue.record("\(coverage)", severity: .warning, sourceLocation: sourceLocation)
    case .failed(let finding): Failure(reason: "\(finding)", finding: finding).record(at: sourceLocation)
    }
}

// MARK: One schedule

/// Replays or steps through the schedule that the environment asks for; `false` if it asks for none.
private func isOneSchedule(
    of exploration: Exploration, _ program: @escaping @Sendable (Simulation) throws -> Void,
    _ sourceLocation: SourceLocation
) async -> Bool {
    if let text = getenv("RUNLOOP_STEP").map({ String(cString: $0) }) {
        await step(text, exploration, program, sourceLocation: sourceLocation)
    } else if let text = getenv("RUNLOOP_REPLAY").map({ String(cString: $0) }) {
        replay(text, exploration, program, sourceLocation: sourceLocation)
    } else {
        return false
    }
    return true
}

/// Steps through a schedule by commands. The schedule runs in another process, so that a trap ends only that process.
private func step(
    _ text: String, _ exploration: Exploration, _ program: @escaping @Sendable (Simulation) throws -> Void,
    sourceLocation: SourceLocation
) async {
    let (test, name) = (Test.current, name(at: sourceLocation, in: Test.Case.current))
    guard let token = token(text, sourceLocation: sourceLocation) else { return }
    let fault = await interceptingIssues(of: program, sourceLocation) { body -> Exploration.Fault? in
        withoutActuallyEscaping(body) { body in
            let stepper =
                if let test, let name {
                    Exploration.Stepper(
                        exploration, token, inProcessesFor: name, arguments: arguments(for: test), body)
                } else {
                    Exploration.Stepper(exploration, token, body)
                }
            let conversation = Locked(Conversation())
            stepper?.talk(
                reading: { conversation.withLock { $0.read() } },
                printing: { lines in conversation.withLock { $0.write(lines) } })
            return stepper?.fault
        }
    }
    if let fault = fault ?? nil { Issue.record(Comment(rawValue: "\(fault)"), sourceLocation: sourceLocation) }
}

/// The command that steps through a schedule of the current test.
private var steppingCommand: (@Sendable (ScheduleToken) -> String)? {
    guard let test = Test.current else { return nil }
    // The filter leaves out the test's parameters.
    let filter = words(for: test).prefix { $0 != "(" }
    let isPlain = filter.allSatisfy { $0.isLetter || $0.isNumber || "._/".contains($0) }
    return { "RUNLOOP_STEP=\($0.shellWord) swift test --filter \(isPlain ? String(filter) : "'\(filter)'")" }
}

private func token(_ text: String, sourceLocation: SourceLocation) -> ScheduleToken? {
    if let token = ScheduleToken(text) { return token }
    let sentence = "\(quoted(text)) is not the token of a schedule; copy the one of a report, such as 0:main.1@1>main.2"
    Issue.record(Comment(rawValue: sentence), sourceLocation: sourceLocation)
    return nil
}

/// Prints that a schedule has failed and is being shortened, during which the test prints nothing else.
private func tell(_ progress: Exploration.Progress) {
    guard case .shrinking = progress else { return }
    let line = Array("\(progress)\n".utf8)
    write(2, line, line.count)
}

private struct Failure: Sendable {
    let reason: String
    var finding: Exploration.Finding?

    /// Records an issue, and attaches the finding to the test.
    func record(at place: SourceLocation) {
        Issue.record(Comment(rawValue: reason), sourceLocation: place)
        guard let finding, Test.current != nil else { return }
        Attachment.record(finding.html, named: "finding.html", sourceLocation: place)
        Attachment.record("\(finding.token)\n", named: "token.txt", sourceLocation: place)
        Attachment.record(finding.trace + "\n", named: "trace.txt", sourceLocation: place)
    }
}

/// Returns the campaign to run instead of an exploration; `nil` if the environment asks for none.
private func makeCampaign(
    of exploration: Exploration, requiring marks: [String], in test: Test, _ testCase: Test.Case?
) -> Campaign? {
    guard let directory = getenv("RUNLOOP_CAMPAIGN").map({ String(cString: $0) }) else { return nil }
    let seconds = getenv("RUNLOOP_CAMPAIGN_SECONDS").flatMap { Int(String(cString: $0)) }
    guard let words = name(at: words(for: test), in: testCase) else { return nil }
    let name = words.split { !$0.isLetter && !$0.isNumber }.joined(separator: "-")
    var night = exploration
    if let seconds { (night.schedules, night.duration) = (.max, .seconds(seconds)) }
    return Campaign(name, of: night, in: "\(directory)/\(name)", requiring: marks)
}

/// Runs a program in this process with a schedule that an exploration has found.
///
/// ```swift
/// @Test func overdrawnOnce() { replay("0:main.1@1>main.2", transfer) }
/// ```
///
/// - Parameters:
///   - token: the token of the schedule.
///   - program: the explored program.
///   - sourceLocation: the place where the issue is reported.
@available(*, noasync, message: "a simulation runs on one thread; call it from a synchronous function")
public func replay(
    _ token: String, _ program: (Simulation) throws -> Void, sourceLocation: SourceLocation = #_sourceLocation
) {
    replay(token, Exploration(), program, sourceLocation: sourceLocation)
}

private func replay(
    _ text: String, _ exploration: Exploration, _ program: (Simulation) throws -> Void, sourceLocation: SourceLocation
) {
    guard let token = token(text, sourceLocation: sourceLocation) else { return }
    let fault = exploration.replay(token) { simulation in
        simulation.captureExecutors()
        try program(simulation)
    }
    if let fault { Issue.record(Comment(rawValue: "\(fault)"), sourceLocation: sourceLocation) }
}

/// The number of times that each task has reached an exploration.
private let calls = Locked<[String: Int]>([:])

/// The name by which a process that runs an exploration's schedules finds that exploration, even in a loop; `nil` if it
/// could not.
private func name(at place: SourceLocation, in testCase: Test.Case?) -> String? {
    name(at: "\(place.fileID):\(place.line):\(place.column)", in: testCase)
}

/// A place, the case of the test, and the number of times that the calling task has reached the place.
private func name(at place: String, in testCase: Test.Case?) -> String? {
    var place = place
    if let testCase, testCase.isParameterized {
        guard let identifier = identifier(of: testCase) else { return nil }
        place += " " + identifier
    }
    // The task's number, because a later task may reuse the address, and a test may be repeated. Unsafe, but the
    // runtime's tasks are jobs, and both types are a pointer to one; only a job gives its number.
    let task = withUnsafeCurrentTask { $0.map { "\(unsafeBitCast($0, to: UnownedJob.self))" } ?? "" }
    let count = calls.withLock { calls in
        calls["\(place) \(task)", default: 0] += 1
        return calls["\(place) \(task)"]!
    }
    return "\(place) \(count)"
}

/// The name of a test without its line, which moves when the file is edited.
private func words(for test: Test) -> String {
    "\(test.id)".split(separator: "/").dropLast().joined(separator: "/")
}

/// The identity of a test case in any process: the encoding or description of each argument, and a number for cases
/// with equal arguments. `nil` if this version of Swift Testing stores the identity, which is not public, elsewhere.
private func identifier(of testCase: Test.Case) -> String? {
    let mirror = Mirror(reflecting: testCase)
    guard let arguments = mirror.descendant("_kind", "parameterized", "arguments"),
        let number = mirror.descendant("_kind", "parameterized", "discriminator") as? Int
    else { return nil }
    var name = ""
    for argument in Mirror(reflecting: arguments).children {
        guard let bytes = Mirror(reflecting: argument.value).descendant("id", "bytes") as? [UInt8] else { return nil }
        // Names of private types contain an address, which differs between processes.
        let text = String(decoding: bytes, as: UTF8.self).replacing(/at \$[0-9a-f]+/, with: "")
        name += "\(text.utf8.count) \(text) "
    }
    // Hashed, because names in an environment must be short.
    var hash = SeededNumbers(seed: 0, for: name)
    return "\(hash.next()).\(number)"
}

/// The command that runs this program again for one test.
private func arguments(for test: Test) -> [String] {
    // The filter is a regular expression.
    let name = "\(test.id)".map { $0.isLetter || $0.isNumber ? "\($0)" : "\\\($0)" }.joined()
    return [CommandLine.arguments[0], "--testing-library", "swift-testing", "--filter", "^\(name)"]
}

private struct Unmet: Error, CustomStringConvertible {
    let description: String

    init(_ issue: Issue) {
        let place = issue.sourceLocation.map { " at \($0.fileID):\($0.line)" } ?? ""
        description = "\(issue)\(place)"
    }
}
#endif
