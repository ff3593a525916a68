import RunLoopCore

/// Reads the flight of a loop with the rows of ``PassTable``, and refuses it where no row fits.
///
/// The table has more than a flight: silent events may have happened. So the machine keeps all steps in which a run may
/// be. Of two ways into a step the later one allows more, because more was armed and posted before it.
struct PassMachine {
    /// A test's knowledge about a handler.
    struct Knowledge {
        let modes: Set<String>
        /// `true` if the handler's last act stops the run that it is called in.
        var stops = false
        /// For a repeating timer: a date of its grid, and its interval.
        var grid: (date: RunLoop.Instant, interval: Duration)?
    }

    /// A test's knowledge about a program.
    struct Program {
        /// `true` if there is one observer for each activity, with its name, in all modes.
        var isObserved = false
        /// `true` if time only moves while the loop sleeps or a handler works.
        var isVirtual = false
        /// `true` if the flight has everything, from the first item on until every block has run.
        var isWhole = false
        /// The threads that only post blocks.
        var posters: Set<String> = []
        var know: (Flight.Handler) -> Knowledge? = { _ in nil }
    }

    struct Refusal: Error, CustomStringConvertible {
        let place: Int
        let description: String
    }

    private struct Run {
        let mode: String
        /// For each step in which the run may be, the latest place at which it may have been entered.
        var steps: [Int?]
        /// The timers that the run has fired.
        var fired: [(place: Int, name: String?, deadline: RunLoop.Instant)] = []
        /// The place where a handler has stopped the run.
        var stopped: Int?
    }

    private struct Effect: Hashable {
        let kind: RunLoop.ItemKind
        let number: UInt64
    }

    private struct Call {
        let place: Int
        let call: FlightStory.Call
        let knowledge: Knowledge?
        let deadline: RunLoop.Instant?
        let cause: Int?
    }

    private struct Fire {
        let place: Int
        let armed: Int
        let deadline: RunLoop.Instant
        let modes: Set<String>
    }

    private struct Row {
        /// The row's place in the table.
        let number: Int
        let event: String
        let next: Int
        let isSilent: Bool
        let isAnnouncement: Bool
        /// `true` if the flight refutes the row's guard after a handler has stopped the run.
        let goesOn: Bool
    }

    private let stepNames: [String]
    /// The rows of each step.
    private let rows: [[Row]]
    private let program: Program
    private var entries: [FlightStory.Entry] = []
    private var place = 0
    private var runs: [Run] = []
    private var calls: [Call] = []
    /// For each run and call under way, `true` for a call. A run is in a call or outside, and a call is in a run; a
    /// task's call is in the call of a block.
    private var layers: [Bool] = []
    private var isInCall: Bool { layers.last != false }
    /// The place where each effect was caused.
    private var causes: [Effect: Int] = [:]
    private var done: Set<Effect> = []
    /// The blocks that the loop itself has posted, in order.
    private var pending: [(number: UInt64, place: Int, modes: Set<String>)] = []
    /// The blocks of other threads that have run while no turn of an outer run can have held earlier ones.
    private var posted: [(thread: String, number: UInt64, mode: String)] = []
    private var ends: [String: Int] = [:]
    private var lastEnds: [String: RunLoop.Instant] = [:]
    private var fires: [Fire] = []
    private var sleeps: [(place: Int, begin: RunLoop.Instant, end: RunLoop.Instant, mode: String)] = []
    /// The places of the rows that were followed, without silent ones.
    private(set) var used: Set<Int> = []

    private static let silent: Set = ["-", "mail", "turn", "looks", "clock"]
    private static let announcements: Set = [
        "entry", "beforeTimers", "beforeSources", "beforeWaiting", "afterWaiting", "exit",
    ]
    /// A flight refutes `going` and `goesOn` if a handler has stopped the run, `due` and `queued` by dates and causes,
    /// and `sleepy` by a block that waits. It cannot refute the others: another thread may have stopped the run, more
    /// mail may have come, and a turn may be over before all have run. Flights do not record that a source is
    /// signalled, or a descriptor ready.
    private static let conditions: Set = [
        "-", "going", "goesOn", "due", "queued", "sleepy", "stopped", "over", "busy", "quiet", "drained", "fired",
        "signalled", "found", "unready",
    ]

    init(_ table: PassTable, _ program: Program) {
        self.program = program
        let names = Set(table.rows.flatMap { [$0.step, $0.next] }).sorted()
        stepNames = names
        rows = names.map { name in
            table.rows.enumerated().filter { $1.step == name }.map { number, row in
                Row(
                    number: number, event: row.event, next: names.firstIndex(of: row.next)!,
                    isSilent: Self.silent.contains(row.event),
                    isAnnouncement: Self.announcements.contains(row.event),
                    goesOn: row.condition == "going" || row.condition == "goesOn")
            }
        }
        let unknown = table.rows.map(\.condition).filter { !Self.conditions.contains($0) }
        precondition(unknown.isEmpty, "the machine does not know the guards \(unknown)")
    }

    /// Reads the whole flight of a loop, from its first run to the end of its last.
    mutating func read(_ story: FlightStory) throws(Refusal) {
        entries = story.entries
        for index in entries.indices {
            place = index
            try read(entries[index])
        }
        place = entries.count
        try require(runs.isEmpty && calls.isEmpty, "something is still under way at the end")
        try checkEnd()
    }

    private func require(_ condition: Bool, _ text: @autoclosure () -> String) throws(Refusal) {
        guard !condition else { return }
        let event = place < entries.count ? "\(entries[place].time) \(entries[place].event): " : ""
        throw Refusal(place: place, description: "entry \(place): \(event)\(text())")
    }

    private mutating func read(_ entry: FlightStory.Entry) throws(Refusal) {
        try checkTime(of: entry)
        switch entry.event {
        case .runBegan(let mode):
            try require(isInCall, "a run begins neither in a handler nor outside")
            let from = runs.isEmpty ? "outside" : "handler"
            let begin = stepNames.firstIndex(of: from).map { rows[$0].filter { $0.event == "begins" } } ?? []
            try require(!begin.isEmpty, "no run begins there")
            runs.append(Run(mode: mode, steps: stepNames.map { _ in nil }))
            layers.append(false)
            for row in begin { runs[runs.count - 1].steps[row.next] = place }
        case .runEnded(let mode):
            try require(!isInCall && runs.last?.mode == mode, "no run in this mode is the innermost")
            try advance("ends")
            runs.removeLast()
            layers.removeLast()
        case .callBegan(let call):
            try begin(call, at: entry.time)
        case .callEnded:
            try require(isInCall && !calls.isEmpty, "no call is under way")
            layers.removeLast()
            end(calls.removeLast(), at: entry.time)
        case .slept(let duration, _):
            try require(!isInCall, "a sleep within a handler")
            try require(duration >= .zero, "a sleep that ended before it began")
            let mode = runs[runs.count - 1].mode
            try require(!isLeftToDo(in: mode), "a sleep while a block waits for \(mode)")
            try advance("sleeps")
            sleeps.append((place, entry.time - duration, entry.time, mode))
        case .caused(let handler, let number):
            guard let handler else { return }
            let effect = Effect(kind: handler.kind, number: number)
            causes[effect] = place
            guard handler.kind == .block, let knowledge = program.know(handler) else { return }
            pending.append((number, place, knowledge.modes))
        }
    }

    /// Checks that time passes, and virtual time only in sleeps and handlers.
    private func checkTime(of entry: FlightStory.Entry) throws(Refusal) {
        guard place > 0 else { return }
        let before = entries[place - 1].time
        try require(entry.time >= before, "time goes back")
        guard program.isVirtual else { return }
        switch entry.event {
        case .slept(let duration, _):
            try require(before + duration == entry.time, "it has slept since \(before)")
        case .callEnded: break
        case .runBegan, .callBegan, .caused, .runEnded:
            if !isInCall { try require(before == entry.time, "time has passed since \(before)") }
        }
    }

    // MARK: Steps

    /// Adds the steps of the innermost run that silent rows lead to.
    private mutating func goOnSilently() {
        let last = runs.count - 1
        let isStopped = runs[last].stopped != nil
        let heard = calls.compactMap { $0.call.handler?.kind == .observer ? $0.call.handler?.name : nil }
        var rest = runs[last].steps.indices.filter { runs[last].steps[$0] != nil }
        while let step = rest.popLast() {
            for row in rows[step] where row.next != step && !(isStopped && row.goesOn) {
                // An announcement is not heard if there are no observers, or if its observer is on the stack.
                let isSilent =
                    row.isSilent || (row.isAnnouncement && (!program.isObserved || heard.contains(row.event)))
                guard isSilent, (runs[last].steps[row.next] ?? -1) < place else { continue }
                runs[last].steps[row.next] = place
                rest.append(row.next)
            }
        }
    }

    /// Continues the innermost run with an event, if `isAllowed` in a step that was entered at a place.
    private mutating func advance(_ event: String, _ isAllowed: (Int) -> Bool = { _ in true }) throws(Refusal) {
        goOnSilently()
        let steps = runs[runs.count - 1].steps
        var next: [Int?] = stepNames.map { _ in nil }
        for step in steps.indices {
            guard let since = steps[step] else { continue }
            for row in rows[step] where row.event == event && isAllowed(since) {
                used.insert(row.number)
                next[row.next] = max(next[row.next] ?? -1, row.next == step ? since : place)
            }
        }
        guard next.contains(where: { $0 != nil }) else {
            let names = steps.indices.filter { steps[$0] != nil }.map { stepNames[$0] }
            return try require(false, "no \(event) in a step of \(names)")
        }
        runs[runs.count - 1].steps = next
    }

    // MARK: Calls

    private mutating func begin(_ call: FlightStory.Call, at time: RunLoop.Instant) throws(Refusal) {
        let isPoll = call.handler?.kind == .task || call.handler?.kind == .executor
        try require(isPoll ? calls.last?.call.handler?.kind == .block : !isInCall, "a call has to be within a run")
        let last = runs.count - 1
        try require(call.mode == runs[last].mode, "the run is in \(runs[last].mode)")
        let knowledge = call.handler.flatMap(program.know)
        if let knowledge {
            try require(knowledge.modes.contains(call.mode), "its modes are \(knowledge.modes.sorted())")
        }
        var (deadline, cause): (RunLoop.Instant?, Int?)
        switch call.handler?.kind {
        case nil: try require(false, "a call without a name")
        case .observer:
            if program.isObserved { try advance(call.handler!.name ?? "") }
        case .source: try advance("source")
        case .descriptor: try advance("descriptor")
        case .timer, .wallTimer, .delayedCall, .timerSource, .displayLink, .sleep:
            deadline = call.lateness.map { time - $0 }
            try checkDate(of: call, deadline, knowledge)
            cause = try takeCause(of: call)
            let (entries, fired, isVirtual) = (entries, runs[last].fired, program.isVirtual)
            try advance("timer") { since in
                guard cause.map({ $0 < since }) ?? true else { return false }
                guard let deadline else { return true }
                // The clock was read no later than the step's first event.
                guard deadline <= entries[since].time else { return false }
                return fired.reversed().prefix { $0.place >= since }.allSatisfy {
                    ($0.name == nil || $0.name != call.handler?.name) && ($0.deadline <= deadline || !isVirtual)
                }
            }
            if let deadline { runs[last].fired.append((place, call.handler?.name, deadline)) }
        case .task, .executor: break
        case .block:
            try checkOrder(of: call, knowledge)
            cause = try takeCause(of: call)
            try advance("block") { since in cause.map { $0 < since } ?? true }
        }
        layers.append(true)
        calls.append(Call(place: place, call: call, knowledge: knowledge, deadline: deadline, cause: cause))
    }

    private mutating func end(_ ended: Call, at time: RunLoop.Instant) {
        if let name = ended.call.handler?.name, let deadline = ended.deadline, let knowledge = ended.knowledge {
            fires.append(
                Fire(
                    place: ended.place, armed: ended.cause ?? ends[name] ?? 0, deadline: deadline,
                    modes: knowledge.modes))
            ends[name] = place
            lastEnds[name] = time
        }
        if ended.knowledge?.stops == true { runs[runs.count - 1].stopped = place }
    }

    // MARK: Items

    /// Checks that a fire is never early, on the grid, and made once for the missed periods.
    private func checkDate(
        of call: FlightStory.Call, _ deadline: RunLoop.Instant?, _ knowledge: Knowledge?
    ) throws(Refusal) {
        guard let lateness = call.lateness, let deadline else { return }
        try require(lateness >= .zero, "it is early")
        guard program.isVirtual, let grid = knowledge?.grid, let name = call.handler?.name else { return }
        let offset = (deadline.nanoseconds - grid.date.nanoseconds) % grid.interval.nanoseconds
        try require(offset == 0, "its date is not on its grid")
        if let end = lastEnds[name] { try require(deadline > end, "it has fired for this date") }
    }

    /// Takes the place where the call was caused, which is before it and serves one call.
    private mutating func takeCause(of call: FlightStory.Call) throws(Refusal) -> Int? {
        guard let handler = call.handler, let number = call.number, call.thread == nil else { return nil }
        let cause = causes.removeValue(forKey: Effect(kind: handler.kind, number: number))
        try require(cause != nil || !program.isWhole, "nothing has caused it")
        return cause
    }

    /// Checks that each block runs once, and one poster's blocks in order.
    private mutating func checkOrder(of call: FlightStory.Call, _ knowledge: Knowledge?) throws(Refusal) {
        guard let number = call.number else { return }
        try require(done.insert(Effect(kind: .block, number: number)).inserted, "it has run before")
        if let index = pending.firstIndex(where: { $0.number == number }) {
            let earlier = pending[..<index].contains { $0.modes.contains(call.mode) && !isTaken($0.place, $0.modes) }
            try require(!earlier, "one that was posted before it has not run")
            pending.remove(at: index)
        }
        guard let thread = call.thread, let knowledge else { return }
        let isOvertaken = posted.contains {
            $0.thread == thread && $0.number > number && knowledge.modes.contains($0.mode)
        }
        try require(!isOvertaken, "one that the same thread posted after it has run")
        guard !calls.contains(where: { $0.call.handler?.kind == .block }) else { return }
        posted.append((thread, number, call.mode))
    }

    /// Returns `true` if a waiting block belongs to the turn of an outer run: an inner one does not see it.
    private func isTaken(_ posted: Int, _ modes: Set<String>) -> Bool {
        runs.dropLast().contains { run in
            modes.contains(run.mode)
                && zip(stepNames, run.steps).contains { name, since in
                    since.map { posted < $0 && ["blocks", "again", "last"].contains(name) } ?? false
                }
        }
    }

    private func isLeftToDo(in mode: String) -> Bool {
        pending.contains { $0.modes.contains(mode) && !isTaken($0.place, $0.modes) }
    }

    /// Checks the rules that can be checked only at the end.
    private func checkEnd() throws(Refusal) {
        if program.isWhole { try require(pending.isEmpty, "\(pending.count) blocks have not run") }
        for fire in fires {
            let overslept = sleeps.first {
                fire.armed < $0.place && $0.place < fire.place && fire.modes.contains($0.mode)
                    && fire.deadline < (program.isVirtual ? $0.end : $0.begin)
            }
            try require(
                overslept == nil, "the sleep at entry \(overslept?.place ?? 0) passed the date of \(fire.place)")
        }
        for thread in program.posters {
            // A thread that has woken the loop has posted something that runs later.
            var surplus = 0
            for entry in entries.reversed() {
                switch entry.event {
                case .callBegan(let call) where call.thread == thread: surplus += 1
                case .slept(_, .thread(thread)): surplus -= 1
                default: continue
                }
                try require(surplus >= 0, "the thread \(thread) has woken the loop at \(entry.time) for nothing")
            }
        }
    }
}
