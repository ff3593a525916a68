@_spi(Ports) internal import RunLoopCore
@_spi(Ports) public import RunLoopSimulation

extension Exploration {
    /// Replays a schedule step by step, forward and back, and departs from it.
    ///
    /// A stepper runs the program once and keeps a record of the run: its events, and the choices among them. Its
    /// position is the number of steps before the current place, and each place is an event, a choice, or the end.
    /// Going back costs no run. ``lookAround()`` and ``depart(to:)`` run the program again, which must do the same each
    /// time.
    ///
    /// ```swift
    /// let stepper = Exploration.Stepper(Exploration(), ScheduleToken(seed: 0), startUp)
    /// while !stepper.isAtEnd {
    ///     print(stepper.place)
    ///     stepper.goForward()
    /// }
    /// ```
    ///
    /// ``talk()`` reads commands from standard input. The page <doc:StepThroughASchedule> shows a session.
    ///
    /// Use a stepper on one thread, on which the program runs if it does not run in another process. Not `Sendable`.
    public final class Stepper {
        /// The schedule.
        public private(set) var token: ScheduleToken

        /// The number of steps before the current place, at most ``count``.
        public private(set) var position = 0

        private let replay: (ScheduleToken, Recording) -> Run
        private var run: Run
        private var looks: [Int: [String]] = [:]

        /// Creates a stepper that runs a program with a schedule on the calling thread, where a trap ends the process.
        ///
        /// - Parameters:
        ///   - exploration: the limits of the run.
        ///   - token: the schedule.
        ///   - body: the program. Called once for each run, it must do the same each time except for the choices of its
        ///     simulation.
        @available(*, noasync, message: "a simulation runs on one thread; call it from a synchronous function")
        public convenience init(
            _ exploration: Exploration, _ token: ScheduleToken, _ body: @escaping (Simulation) throws -> Void
        ) {
            let runner = LocalRunner(portfolio: exploration.portfolio, limits: exploration.limits, body: body)
            self.init(token) { runner.replay($0, $1) }
        }

        /// Creates a stepper that runs a program with a schedule in another process, so that a run that traps or never
        /// ends has a record up to there. As for ``run(inProcessesFor:arguments:_:)``, the other process runs this
        /// program again, and has to reach the same call.
        ///
        /// The result is `nil` in a process that runs the schedules of another exploration.
        ///
        /// - Parameters:
        ///   - exploration: the limits of the run.
        ///   - token: the schedule.
        ///   - name: the name of this exploration among the program's explorations.
        ///   - arguments: the command that runs the program, its name first; by default the arguments of this process.
        ///   - body: the program; see ``init(_:_:_:)``.
        @available(*, noasync, message: "a simulation runs on one thread; call it from a synchronous function")
        public convenience init?(
            _ exploration: Exploration, _ token: ScheduleToken, inProcessesFor name: String,
            arguments: [String] = CommandLine.arguments, _ body: (Simulation) throws -> Void
        ) {
            guard var runner = exploration.makeProcesses(for: name, arguments, body) else { return nil }
            self.init(token) { runner.replay($0, $1) }
        }

        private init(_ token: ScheduleToken, _ replay: @escaping (ScheduleToken, Recording) -> Run) {
            (self.token, self.replay) = (token, replay)
            run = replay(token, .trace())
        }

        // MARK: The run

        /// The number of steps of the run. O(1).
        public var count: Int { run.trace.entries.count }

        /// The fault of the run, if any, which is found at the end.
        public var fault: Fault? { run.fault }

        /// A Boolean value that indicates whether the run was longer than its record in another process, which has room
        /// for 16 MB.
        public var isCut: Bool { run.trace.isCut }

        /// The departures of the token that have not happened: the program has not reached their places, or has no such
        /// choice there. O(n²) in their number.
        public var missing: [ScheduleToken.Departure] {
            // In the order of the token; a repeated place has each of its departures once.
            var made = run.token.departures
            return token.departures.filter { departure in
                guard let index = made.firstIndex(of: departure) else { return true }
                made.remove(at: index)
                return false
            }
        }

        // MARK: The place

        /// A Boolean value that indicates whether the position is at the end.
        public var isAtEnd: Bool { position == count }

        /// The current place: the next event or choice, or the end. O(n) in the number of its options.
        public var place: Place { Place(position, in: run) }

        /// Returns a line for each thread at this place, and below it lines for its waits. Runs the program again at
        /// the first call for a place.
        ///
        /// In a run that traps, returns the last lines before the trap; none if there were none.
        @available(*, noasync, message: "a simulation runs on one thread; call it from a synchronous function")
        public func lookAround() -> [String] {
            let position = isNoteOfDeparture ? position - 1 : position
            if looks[position] == nil { looks[position] = look(at: position) }
            return looks[position]!
        }

        private func look(at position: Int) -> [String] {
            if let lines = replay(token, .trace(lookingAt: position)).look { return lines }
            let last = run.trace.entries.lastIndex { $0.choice != nil }
            guard let last, last < position else { return [] }
            return replay(token, .trace(lookingAt: last)).look ?? []
        }

        /// `true` if this place is the note of a departure that was chosen right before, between two turns of threads.
        private var isNoteOfDeparture: Bool {
            guard position > 0, let choice = run.trace.entries[position - 1].choice, choice.isDeparture else {
                return false
            }
            return choice.kind == .thread || choice.kind == .event
        }

        /// A picture of the last events before this place, and of a few after it. O(n) in the number of steps before.
        public var picture: String {
            var trace = Trace()
            trace.entries = Array(run.trace.entries[..<position])
            let later = run.trace.entries[position...].lazy.compactMap(\.event)
            let earlier = trace.entries.lazy.compactMap(\.event)
            if let near = later.first(where: { !$0.words.isEmpty }) ?? earlier.last(where: { !$0.words.isEmpty }) {
                // A departure right before this place is marked at the event that follows.
                let end = trace.entries.lastIndex { $0.event != nil } ?? -1
                let here = TracedEvent(
                    date: near.date, lane: near.lane, thread: nil, kind: .note, words: "◀ here", place: nil)
                trace.entries.insert(.event(here), at: end + 1)
            }
            trace.entries += later.prefix(Self.laterEvents).map { .event($0) }
            return SimulationTrace(trace, of: token, nil).picture
        }

        /// The number of events after a place in its picture.
        private static let laterEvents = 8

        // MARK: Steps

        /// Goes one step forward, except at the end. O(1).
        public func goForward() {
            if !isAtEnd { position += 1 }
        }

        /// Goes one step back, except at the beginning. O(1).
        public func goBack() {
            if position > 0 { position -= 1 }
        }

        /// Goes to the place after `position` steps.
        ///
        /// - Precondition: `position` is from zero to ``count``.
        public func go(to position: Int) {
            require((0...count).contains(position), "a run of \(count) steps has no place \(position)")
            self.position = position
        }

        /// Goes to the end, where the fault is found. O(1).
        public func goToEnd() {
            position = count
        }

        /// Goes to the next choice.
        ///
        /// - Returns: `true` if there is one; if not, the position stays.
        public func goToNextChoice() -> Bool { goForward { $0.choice != nil } }

        /// Goes to the previous choice.
        ///
        /// - Returns: `true` if there is one; if not, the position stays.
        public func goToPreviousChoice() -> Bool { goBack { $0.choice != nil } }

        /// Goes to the next departure.
        ///
        /// - Returns: `true` if there is one; if not, the position stays.
        public func goToNextDeparture() -> Bool { goForward { $0.choice?.isDeparture == true } }

        /// Goes to the previous departure.
        ///
        /// - Returns: `true` if there is one; if not, the position stays.
        public func goToPreviousDeparture() -> Bool { goBack { $0.choice?.isDeparture == true } }

        private func goForward(to isTarget: (Trace.Entry) -> Bool) -> Bool {
            let target = run.trace.entries[position...].dropFirst().firstIndex(where: isTarget)
            position = target ?? position
            return target != nil
        }

        private func goBack(to isTarget: (Trace.Entry) -> Bool) -> Bool {
            let target = run.trace.entries[..<position].lastIndex(where: isTarget)
            position = target ?? position
            return target != nil
        }

        // MARK: Departing

        /// A reason why a stepper does not depart. A `Sendable` value.
        public struct DepartureError: Error, Sendable, Hashable, CustomStringConvertible {
            /// The reason, in words.
            public let description: String
        }

        /// Chooses another option at this place, and runs the program with the new schedule. The departures before this
        /// place stay, and later ones are dropped. The position stays.
        ///
        /// - Parameter option: the number of an option; the usual one drops a departure.
        /// - Throws: a ``DepartureError`` if there is no such choice here, or if the program does something else before this
        ///   place, so that its runs cannot be repeated. Then nothing has changed.
        @available(*, noasync, message: "a simulation runs on one thread; call it from a synchronous function")
        public func depart(to option: Int) throws(DepartureError) {
            guard let choice = place.choice?.record else {
                throw DepartureError(description: "nothing can be chosen here; s goes to the next choice")
            }
            guard choice.range.contains(option) else {
                let range = choice.range
                throw DepartureError(
                    description: "\(option) is no option here; they are \(range.lowerBound) to \(range.upperBound)")
            }
            let earlier = run.trace.entries[..<position]
            var departures = earlier.compactMap(\.choice).filter(\.isDeparture).map { $0.departure(to: $0.chosen) }
            if option != choice.usual { departures.append(choice.departure(to: option)) }
            let new = ScheduleToken(seed: token.seed, departures: departures)
            let run = replay(new, .trace())
            guard run.trace.entries.starts(with: earlier), run.trace.entries.count > position,
                run.trace.entries[position].choice?.chosen == option
            else { throw DepartureError(description: Fault.difference.description) }
            (token, self.run, looks) = (new, run, [:])
        }
    }
}

extension Trace.Choice {
    /// Returns the departure to another choice at the same place.
    fileprivate func departure(to choice: Int) -> ScheduleToken.Departure {
        ScheduleToken.Departure(
            place: place, step: step, instead: isAmongLanes ? .other(name(of: choice)) : .possibility(choice))
    }
}
