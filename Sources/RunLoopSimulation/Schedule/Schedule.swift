@_spi(Ports) public import RunLoopCore

/// The schedule of an explored simulation, which decides, wherever the order is open, what continues. It asks a chooser
/// for each choice.
///
/// Tasks, threads and named choices have *lanes*. A lane that was passed over is held back, so that one departure from
/// the usual order is enough for "everything else happens first".
@_spi(Ports) public final class Schedule: @unchecked Sendable {
    // Unchecked, but used only by the thread whose turn it is, and by the exploring thread when the run has ended.

    private var chooser: any Chooser
    /// Returns the virtual time.
    public internal(set) var time: () -> RunLoop.Instant = { RunLoop.Instant(nanoseconds: 0) }
    /// Looks at the simulation, if a look was requested.
    var takeLook: (() -> Void)?
    private var lanes: [Lane] = []
    private var laneOfTask: [Int: Int] = [:]
    /// The jobs that wait on a thread or are on their way there, in the order of their arrival.
    private var waiting: [Int: [WaitingJob]] = [:]
    /// The chosen jobs that are still on their way, for threads that must first take them in.
    private var promised: [Int: (lane: Int, step: (task: String, step: String), departure: String?)] = [:]
    private var laneOfThread: [Int: Int] = [:]
    private var laneOfTurn: [Turn: Int] = [:]
    private var laneOfHandler: [Handler: Int] = [:]
    /// The lanes of handlers by name: items with the same name on a thread share one.
    private var laneOfHandlerName: [String: Int] = [:]
    private var laneOfPossibility: [Possibility: Int] = [:]
    /// The number of places so far where each kind of fault could have happened.
    private var faultPlaces: [String: Int] = [:]
    /// The task whose job runs on a thread, or ran last.
    private var tasks: [Int: (lane: Int, isRunning: Bool)] = [:]
    /// The lane of the step or handler that has most recently ended on a thread.
    private var lastLanes: [Int: Int] = [:]
    private var yieldCount = 0
    /// The number of places with more than one possibility.
    private var pointCount = 0
    /// The most recently chosen task, and its step.
    private(set) var lastStep = (task: "", step: "")
    /// The usual choice that the most recent choice of a task, thread or world event replaced; `nil` if that choice was
    /// usual.
    private(set) var lastDeparture: String?
    /// The tasks of loops that have begun and not ended, by their numbers: the names of their lanes, and the places
    /// where they were started.
    private var openTasks: [Int: (name: String, origin: RunLoop.Origin, thread: Int)] = [:]
    private var taskCount = 0
    /// The number of tasks or threads that have had each name: a host that starts again reuses its names.
    private var sameNames: [String: Int] = [:]
    /// The number of the loop task to which the next new task belongs.
    private var newTask: Int?

    private struct WaitingJob {
        let address: UInt
        let lane: Int
        /// `true` if another thread has sent the job, and this one has not looked yet.
        var isOnItsWay: Bool
    }

    /// A kind of turn of a thread. Turns are numbered by kind, so that an unrelated timer or task on the thread does
    /// not change the numbers of the others.
    private enum Turn: Hashable {
        /// A turn in which a task is next.
        case task(Int)
        /// A turn because a date has come.
        case date(thread: Int)
        /// A turn after a handler has ended.
        case handler(Int)
    }

    /// A call of an item's handler.
    struct Call: Hashable {
        let name: String?
        let origin: RunLoop.Origin
    }

    /// The calls of an item's handler.
    private struct Handler: Hashable {
        let thread: Int
        let call: Call
    }

    /// A named choice.
    private struct Possibility: Hashable {
        /// The lane that asks; `nil` for the first thread and for the world around the threads.
        let asker: Int?
        let what: String
    }

    /// A task, a thread, a kind of a thread's turns, an item's handler, or a named choice.
    private struct Lane {
        let name: String
        /// The number of the thread, for a thread's lane.
        let thread: Int?
        /// The machine of the thread, if it has one.
        var machine: String?
        /// The number of steps that the lane has made.
        var steps = 0
        /// The number of times that the lane was the one to continue, with others or alone.
        var turns = 0
        /// The number of tasks that the lane has started, for each place in the program.
        var children: [RunLoop.Origin?: Int] = [:]
        /// The number of the yield at which the lane let others go first, if it has not continued since.
        var yield: Int?
        /// The number of the place until which all other lanes go first, because one of them continued instead.
        var delay = 0
    }

    /// Creates the schedule of one simulation. The chooser is called on the thread whose turn it is.
    public init(_ chooser: any Chooser) {
        self.chooser = chooser
    }

    private func add(_ name: String, thread: Int? = nil) -> Int {
        lanes.append(Lane(name: name, thread: thread))
        return lanes.count - 1
    }

    private func unique(_ name: String) -> String {
        var result = name
        repeat {
            sameNames[name, default: 0] += 1
            if sameNames[name]! > 1 { result = "\(name) \(sameNames[name]!)" }
        } while result != name && sameNames[result] != nil
        if result != name { sameNames[result] = 1 }
        return result
    }

    private func lane(ofThread index: Int, _ name: @autoclosure () -> String) -> Int {
        if let lane = laneOfThread[index] { return lane }
        laneOfThread[index] = add(unique("*" + name()), thread: index)
        return laneOfThread[index]!
    }

    /// - Parameters:
    ///   - options: the lanes that may continue.
    ///   - usual: the lane that usually continues.
    ///   - places: the lanes that count the steps and name the places, one for each option.
    ///   - isWithinHandler: `true` if the usual lane belongs to a thread within a handler.
    ///   - words: the words for each option, if the names of the lanes are not enough.
    private func decide(
        _ kind: ChoicePoint.Kind, _ options: [Int], usual: Int, places: [Int], isWithinHandler: Bool = false,
        words: ((Int) -> String)? = nil
    ) -> Int {
        let first = lanes[options[usual]]
        var choice = usual
        if options.count > 1 {
            choice = choose(kind, options, usual: usual, place: places[usual], words)
            pointCount += 1
        }
        let chosen = options[choice]
        lanes[places[choice]].steps += 1
        if kind == .task { lastStep = (lanes[chosen].name, "step \(lanes[chosen].steps)") }
        if kind != .possibility {
            lanes[chosen].turns += 1
            if choice != usual { holdBack(options[usual], isWithinHandler: isWithinHandler) }
            let name = first.thread == nil ? first.name : String(first.name.dropFirst())
            lastDeparture = choice == usual ? nil : name
        }
        (lanes[chosen].yield, lanes[chosen].delay) = (nil, 0)
        return choice
    }

    private func choose(
        _ kind: ChoicePoint.Kind, _ options: [Int], usual: Int, place: Int, _ words: ((Int) -> String)? = nil
    ) -> Int {
        // Threads and events are chosen under a lock; its owner has looked.
        if kind != .thread && kind != .event { takeLook?() }
        return chooser.choose(
            at: ChoicePoint(
                kind: kind, number: pointCount, lanes: options, usual: usual, placeLane: place,
                step: lanes[place].steps, yields: options.map { lanes[$0].yield },
                lane: { [unowned self] in (lanes[$0].name, lanes[$0].turns, lanes[$0].machine) }, words: words))
    }

    /// Holds back a lane. For a thread on which tasks wait, holds back these tasks instead, and not later ones, except
    /// within a handler.
    private func holdBack(_ lane: Int, isWithinHandler: Bool) {
        let thread = isWithinHandler ? nil : lanes[lane].thread
        let tasks = thread.flatMap { waiting[$0] }?.map(\.lane) ?? []
        for lane in tasks.isEmpty ? [lane] : tasks { lanes[lane].delay = pointCount + Self.longestDelay }
    }

    /// The number of places for which a lane is held back, limited because others may wait for the lane without
    /// resting.
    private static let longestDelay = 256

    /// Returns the option that usually continues: as in a simulation that is not explored, if it is not held back.
    ///
    /// - Parameter first: the lane that continues in a simulation that is not explored.
    private func usual(of options: [Int], first: Int = 0) -> Int {
        func isFree(_ index: Int) -> Bool { delay(of: options[index]) <= pointCount }
        if isFree(first) { return first }
        return options.indices.first(where: isFree)
            ?? options.indices.min { rank(of: options[$0]) < rank(of: options[$1]) }!
    }

    /// The rank of a held-back lane; the lowest rank continues.
    private func rank(of lane: Int) -> (delay: Int, yield: Int) {
        (max(0, delay(of: lane) - pointCount), lanes[lane].yield ?? 0)
    }

    /// The delay of a lane. A thread whose waiting jobs all belong to held-back tasks is held back with them.
    private func delay(of lane: Int) -> Int {
        let tasks = lanes[lane].thread.flatMap { waiting[$0] }
        return max(lanes[lane].delay, tasks?.lazy.map { [lanes] in lanes[$0.lane].delay }.min() ?? 0)
    }

    /// Returns the numbers of turns, by name, of the tasks, threads and events that had any; only the first `most`.
    public func turns(ofFirst most: Int) -> [String: Int] {
        Dictionary(lanes.lazy.filter { $0.turns > 0 }.prefix(most).map { ($0.name, $0.turns) }) { max($0, $1) }
    }

    // MARK: Choices

    /// Chooses which of the runnable threads goes first.
    ///
    /// - Parameter ready: the threads, in the order in which they were started; at least one.
    func nextThread(of ready: [ReadyThread], usual: Int) -> Int {
        let (options, places) = findLanes(of: ready)
        return decide(.thread, options, usual: self.usual(of: options, first: usual), places: places)
    }

    /// Chooses whether a thread at a place within a handler continues, as usual, or one of `others`, at least one, goes
    /// first.
    ///
    /// - Returns: the index of the other thread, if one goes first.
    func goesFirst(_ others: [ReadyThread], before thread: (number: Int, name: String), _ place: String) -> Int? {
        let (lanes, places) = findLanes(of: others)
        let choice = decide(
            .thread, [lane(ofThread: thread.number, thread.name)] + lanes, usual: 0,
            places: [lane(ofPossibility: place)] + places, isWithinHandler: true)
        return choice == 0 ? nil : choice - 1
    }

    /// Finds the lanes of threads, and the lanes of their turns.
    private func findLanes(of ready: [ReadyThread]) -> (threads: [Int], turns: [Int]) {
        let threads = ready.map { lane(ofThread: $0.number, $0.name) }
        let turns = zip(ready, threads).map { lane(ofTurn: $0, of: $1) }
        for (lane, thread) in zip(threads, ready) { lanes[lane].machine = thread.machine }
        return (threads, turns)
    }

    /// A thread that is ready to continue.
    struct ReadyThread {
        /// The reason for a thread's turn.
        enum Reason {
            /// Another thread has woken this one, or it has just begun.
            case wake
            /// A date has come.
            case date
            /// One of the thread's calls has ended.
            case end
        }

        let number: Int
        let name: String
        let machine: String?
        let reason: Reason
    }

    private func lane(ofTurn ready: ReadyThread, of thread: Int) -> Int {
        let turn: Turn
        if let task = waiting[ready.number]?.first?.lane {
            turn = .task(task)
        } else {
            switch ready.reason {
            case .wake: return thread
            case .date: turn = .date(thread: thread)
            case .end:
                guard let last = lastLanes[ready.number], last != thread else { return thread }
                turn = .handler(last)
            }
        }
        if let lane = laneOfTurn[turn] { return lane }
        laneOfTurn[turn] =
            switch turn {
            case .task(let lane): add("*" + lanes[lane].name)
            case .date: add(lanes[thread].name + "'s timers")
            case .handler(let lane): add("after " + lanes[lane].name.drop { $0 == "*" })
            }
        return laneOfTurn[turn]!
    }

    /// Chooses which of several world events with the same date happens first.
    ///
    /// - Parameter lanes: the lane of each event, in the usual order; at least two.
    func nextEvent(of lanes: [String]) -> Int {
        let options = lanes.map { lane(ofPossibility: $0) }
        return decide(.event, options, usual: 0, places: options)
    }

    /// Records that a thread is about to start a task of its loop.
    ///
    /// - Returns: a number for ``taskEnded(_:)``.
    func taskBegins(named name: String?, at origin: RunLoop.Origin, on thread: Int) -> Int {
        taskCount += 1
        newTask = taskCount
        openTasks[taskCount] = (name ?? "", origin, thread)
        return taskCount
    }

    func taskEnded(_ number: Int) {
        openTasks[number] = nil
        // A task that has begun at once may end before it had a job.
        if newTask == number { newTask = nil }
    }

    /// Records that a thread was killed, and the tasks of its loop with it.
    func threadWasKilled(_ thread: Int) {
        openTasks = openTasks.filter { $0.value.thread != thread }
    }

    /// A hash of the calls and messages so far, including places without a choice. Equal in equal runs.
    public private(set) var digest: UInt64 = 0xcbf2_9ce4_8422_2325

    /// Folds a number into the digest.
    func fold(_ number: Int) {
        digest = (digest ^ UInt64(truncatingIfNeeded: number)) &* 0x0100_0000_01b3
    }

    /// A sentence about a task that has continued forever after the end of its loop.
    public internal(set) var endlessTask: String?

    /// A task of a loop that has not ended although everything else has.
    public var leakedTask: String? {
        openTasks.min { $0.key < $1.key }.map { "task \($0.value.name), which was started at \($0.value.origin)" }
    }

    /// Records that a job waits for its turn on a thread, or is on its way there.
    ///
    /// - Parameter sender: the calling thread.
    func jobCame(_ job: UnownedJob, from sender: Int, to thread: Int) {
        // A job from another thread is reported twice: when it is sent, and when it arrives.
        if let place = waiting[thread]?.firstIndex(where: { $0.address == job.address }) {
            return waiting[thread]![place].isOnItsWay = false
        }
        let running = running(on: sender)
        let lane = lane(of: job, from: sender)
        // With a job of its own or of the runtime, the running task lets others go first, or enters an actor.
        if lane == running {
            yieldCount += 1
            lanes[lane].yield = yieldCount
        }
        waiting[thread, default: []].append(
            WaitingJob(address: job.address, lane: lane, isOnItsWay: sender != thread))
    }

    /// The names of the tasks whose jobs wait for their turn on a thread.
    func waitingTasks(on thread: Int) -> [String] { waiting[thread]?.map { lanes[$0.lane].name } ?? [] }

    private func running(on thread: Int) -> Int? { tasks[thread].flatMap { $0.isRunning ? $0.lane : nil } }

    /// Returns the lane of a job that the calling thread has sent, which is made for the first job of a task.
    ///
    /// - Parameter sender: the calling thread.
    @discardableResult
    func lane(of job: UnownedJob, from sender: Int) -> Int {
        let running = running(on: sender)
        let known = if let task = job.taskNumber { laneOfTask[task] } else { running }
        return known ?? lane(of: job, startedBy: running ?? lane(ofThread: sender, "main"))
    }

    /// - Returns: a new lane for a task; for a job of the runtime, the lane of its starter.
    private func lane(of job: UnownedJob, startedBy parent: Int) -> Int {
        guard let task = job.taskNumber else { return parent }
        let number = newTask.take()
        var name: String
        if let number, case let own = openTasks[number]!.name, !own.isEmpty {
            name = unique(own)
        } else {
            let origin = number.map { openTasks[$0]!.origin }
            let count = lanes[parent].children[origin, default: 0] + 1
            lanes[parent].children[origin] = count
            name = lanes[parent].name + "." + (origin.map(Self.place) ?? "\(count)")
            if origin != nil && count > 1 { name += " \(count)" }
            if name.first == "*" { name.removeFirst() }
            name = unique(name)
        }
        if let number { openTasks[number]!.name = name }
        let lane = add(name)
        laneOfTask[task] = lane
        return lane
    }

    /// Returns the short form of a place, for example `Server:42`.
    private static func place(_ origin: RunLoop.Origin) -> String {
        let file = origin.file.split(separator: "/").last ?? ""
        return "\(file.hasSuffix(".swift") ? file.dropLast(6) : file):\(origin.line)"
    }

    /// Chooses the job that a thread runs next, among the waiting ones, at least one; usually the first.
    /// - Returns: `nil` if the thread must first take in the jobs that are on their way.
    func nextJob(of jobs: [UnownedJob], on thread: Int) -> Int? {
        let waiting = waiting[thread]!
        let lanes = jobs.map { job in waiting.first { $0.address == job.address }!.lane }
        if let (lane, step, departure) = promised.removeValue(forKey: thread), let place = lanes.firstIndex(of: lane) {
            (lastStep, lastDeparture) = (step, departure)
            return begin(jobs[place], of: lane, at: place, on: thread)
        }
        // Only the first of several jobs of a lane can be next. Jobs on their way come after jobs that have arrived.
        var options: [Int] = []
        for lane in lanes + waiting.filter(\.isOnItsWay).map(\.lane) where !options.contains(lane) {
            options.append(lane)
        }
        let lane = options[decide(.task, options, usual: usual(of: options), places: options)]
        guard let place = lanes.firstIndex(of: lane) else {
            promised[thread] = (lane, lastStep, lastDeparture)
            return nil
        }
        return begin(jobs[place], of: lane, at: place, on: thread)
    }

    private func begin(_ job: UnownedJob, of lane: Int, at place: Int, on thread: Int) -> Int {
        tasks[thread] = (lane, true)
        waiting[thread]!.removeAll { $0.address == job.address }
        return place
    }

    /// Records that a call has ended on a thread; a job has then come to rest.
    func callEnded(_ call: Call?, on thread: (number: Int, name: String)) {
        let lane = lane(after: call, on: thread)
        lastLanes[thread.number] = lane
        fold(lane)
        fold(Int(time().nanoseconds))
        tasks[thread.number]?.isRunning = false
    }

    /// Chooses one of `count` possibilities, of which the first is the usual one.
    ///
    /// - Parameter asker: the thread that asks; `nil` for the world around the threads.
    func choose(
        _ what: String, of count: Int, on asker: (number: Int, name: String)?, words: @escaping (Int) -> String
    ) -> Int {
        let lanes = Array(repeating: lane(ofPossibility: what, by: lane(ofAsker: asker)), count: count)
        return decide(.possibility, lanes, usual: 0, places: lanes, words: words)
    }

    private func lane(ofAsker asker: (number: Int, name: String)?) -> Int? {
        guard let asker else { return nil }
        return running(on: asker.number) ?? (asker.number == 0 ? nil : lane(ofThread: asker.number, asker.name))
    }

    /// Chooses whether something unusual happens. The asker is `nil` for the world around the threads.
    func mayHappen(_ what: String, on asker: (number: Int, name: String)?) -> Bool {
        fault(what, by: lane(ofAsker: asker), of: what, atMost: .max) == 1
    }

    /// Chooses whether something unusual happens after a step of a task, or after the call that has most recently ended
    /// on a thread.
    func mayHappen(
        _ what: String, atMost most: Int, after call: Call?, on thread: (number: Int, name: String)
    ) -> Bool {
        fault(what, by: lane(after: call, on: thread), of: what, atMost: most) == 1
    }

    /// Returns the lane of the step or handler that has just ended on a thread, or the thread's own lane.
    private func lane(after call: Call?, on thread: (number: Int, name: String)) -> Int {
        if let running = running(on: thread.number) { return running }
        let lane = lane(ofThread: thread.number, thread.name)
        return call.map { self.lane(of: $0, on: lane) } ?? lane
    }

    /// Chooses whether something unusual happens, and which of several possibilities.
    ///
    /// - Parameters:
    ///   - what: the event, with its place within a handler, if any.
    ///   - asker: the lane that asks; `nil` at a place within a handler, and in the world's turn.
    ///   - kind: the event.
    ///   - most: the number of times that the kind may still happen.
    ///   - count: the number of possibilities, including the first: nothing happens.
    ///   - words: the words for each possibility; `nil` if there are two, which follow from the event.
    /// - Returns: the number of the possibility.
    func fault(
        _ what: String, by asker: Int? = nil, of kind: String, atMost most: Int, among count: Int = 2,
        words: ((Int) -> String)? = nil
    ) -> Int {
        let lane = lane(ofPossibility: what, by: asker)
        let place = faultPlaces[kind, default: 0]
        defer {
            lanes[lane].steps += 1
            faultPlaces[kind] = place + 1
        }
        return choose(
            .fault(of: kind, place: place, most: most), Array(repeating: lane, count: count), usual: 0, place: lane,
            words)
    }

    private func lane(of call: Call, on thread: Int) -> Int {
        let handler = Handler(thread: thread, call: call)
        if let lane = laneOfHandler[handler] { return lane }
        let name = lanes[thread].name + "." + (call.name ?? Self.place(call.origin))
        let lane = laneOfHandlerName[name] ?? add(name)
        (laneOfHandler[handler], laneOfHandlerName[name]) = (lane, lane)
        return lane
    }

    /// Chooses the value of a random quantity, for which the seed gives `drawn`.
    func draw(_ what: String, usual: Int, in range: ClosedRange<Int>, drawn: Int) -> Int {
        let lane = lane(ofPossibility: what)
        defer { lanes[lane].steps += 1 }
        return choose(.quantity(drawn: drawn, range: range), [lane], usual: usual, place: lane)
    }

    private func lane(ofPossibility what: String, by asker: Int? = nil) -> Int {
        let possibility = Possibility(asker: asker, what: what)
        if let lane = laneOfPossibility[possibility] { return lane }
        var name = asker.map { lanes[$0].name + ": " } ?? ""
        if name.first == "*" { name.removeFirst() }
        laneOfPossibility[possibility] = add(name + what)
        return laneOfPossibility[possibility]!
    }
}
