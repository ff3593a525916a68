internal import RunLoopCore
internal import RunLoopSimulation

/// Makes the choices of one run as a strategy says, and notes where they depart from what is usual.
final class Recorder: Choices, @unchecked Sendable {
    // Unchecked, but only the thread whose turn it is gets here, and the one that explores when the run is over.

    private var strategy: any Strategy
    private var lanes: [Lane] = []
    private var laneOfTask: [Int: Int] = [:]
    /// By the addresses of jobs that wait.
    private var laneOfJob: [UInt: Int] = [:]
    private var laneOfThread: [Int: Int] = [:]
    private var laneOfPossibility: [String: Int] = [:]
    /// The task whose job runs on a thread, or ran last.
    private var tasks: [Int: (lane: Int, isRunning: Bool)] = [:]
    /// The thread whose turn it is.
    private var thread = 0
    private var yieldCount = 0
    /// How many places there were with more than one possibility.
    private(set) var pointCount = 0
    private(set) var departures: [ScheduleToken.Departure] = []
    private(set) var lastStep = (task: "", step: "")
    private(set) var lastDeparture: String?
    /// Tasks of loops that have begun and not ended, by their numbers: their lanes' names, and where they were started.
    private var openTasks: [Int: (name: String, origin: RunLoop.Origin)] = [:]
    private var taskCount = 0
    /// How many tasks or threads have had a name: those of a host that starts again have the same.
    private var sameNames: [String: Int] = [:]
    /// The next new task is that one of a loop.
    private var newTask: Int?
    /// Follows from all that was chosen.
    private(set) var digest: UInt64 = 0xcbf2_9ce4_8422_2325

    /// A task, a thread, or something that is chosen.
    private struct Lane {
        let name: String
        /// How often it went on.
        var steps = 0
        /// How many tasks it has started.
        var children = 0
        /// When it let others go first, counted, if it has not gone on since.
        var yield: Int?
        /// Until which place all others go first, because another one went on in its stead.
        var delay = 0
    }

    private let journal: Journal?

    let listener: (@Sendable (String) -> Void)?

    /// - Parameter tellsAll: whether the journal is told of everything that happens.
    init(_ strategy: any Strategy, _ journal: Journal?, tellsAll: Bool) {
        self.strategy = strategy
        self.journal = journal
        listener = if tellsAll, let journal { { journal.append(event: $0) } } else { nil }
    }

    private func add(_ name: String) -> Int {
        lanes.append(Lane(name: name))
        return lanes.count - 1
    }

    private func unique(_ name: String) -> String {
        sameNames[name, default: 0] += 1
        return sameNames[name] == 1 ? name : "\(name) \(sameNames[name]!)"
    }

    private func lane(ofThread index: Int, _ name: @autoclosure () -> String) -> Int {
        if let lane = laneOfThread[index] { return lane }
        laneOfThread[index] = add(unique("*" + name()))
        return laneOfThread[index]!
    }

    /// - Parameters:
    ///   - options: the lanes that may go on.
    ///   - usual: which of them usually does.
    private func decide(_ kind: ChoicePoint.Kind, _ options: [Int], usual: Int) -> Int {
        var choice = usual
        let step = lanes[options[usual]].steps
        if options.count > 1 {
            choice = strategy.choose(
                at: ChoicePoint(
                    kind: kind, number: pointCount, lanes: options, usual: usual, step: step,
                    yields: options.map { lanes[$0].yield }, name: { [unowned self] in lanes[$0].name }))
            pointCount += 1
            mix(choice)
        }
        if choice != usual {
            lanes[options[usual]].delay = kind == .possibility ? 0 : pointCount + Self.longestDelay
            depart(
                lanes[options[usual]].name, step,
                kind == .possibility ? .possibility(choice) : .other(lanes[options[choice]].name))
        }
        lanes[options[choice]].steps += 1
        if kind == .task { lastStep = (lanes[options[choice]].name, "step \(lanes[options[choice]].steps)") }
        if kind != .possibility {
            let name = lanes[options[usual]].name
            lastDeparture = choice == usual ? nil : name.first == "*" ? String(name.dropFirst()) : name
        }
        (lanes[options[choice]].yield, lanes[options[choice]].delay) = (nil, 0)
        return choice
    }

    private func depart(_ place: String, _ step: Int, _ instead: ScheduleToken.Departure.Instead) {
        let departure = ScheduleToken.Departure(place: place, step: step, instead: instead)
        departures.append(departure)
        journal?.append(departure)
    }

    private func mix(_ choice: Int) {
        digest = (digest ^ UInt64(truncatingIfNeeded: choice)) &* 0x0100_0000_01b3
    }

    /// How many places a lane is held back. Without an end, one that others wait for without resting would be for ever.
    private static let longestDelay = 64

    /// Who usually goes on: whoever did last, unless it lets others go first or is held back.
    private func usual(of options: [Int], last: Int?) -> Int {
        func isFree(_ index: Int) -> Bool {
            lanes[options[index]].yield == nil && lanes[options[index]].delay <= pointCount
        }
        if let last, isFree(last) { return last }
        return options.indices.first(where: isFree)
            ?? options.indices.min { rank(of: options[$0]) < rank(of: options[$1]) }!
    }

    /// Of those that are held back or let others go first, the one with the lowest goes on.
    private func rank(of lane: Int) -> (delay: Int, yield: Int) {
        (max(0, lanes[lane].delay - pointCount), lanes[lane].yield ?? 0)
    }

    private func letOthersGoFirst(_ lane: Int) {
        yieldCount += 1
        lanes[lane].yield = yieldCount
    }

    // MARK: What is asked

    func nextThread(of ready: [Int], _ name: (Int) -> String) -> Int {
        let options = ready.map { lane(ofThread: $0, name($0)) }
        let choice = decide(.thread, options, usual: usual(of: options, last: ready.firstIndex(of: thread)))
        thread = ready[choice]
        return choice
    }

    func nextEvent(of lanes: [String]) -> Int {
        let options = lanes.map { lane(ofPossibility: $0) }
        return decide(.event, options, usual: 0)
    }

    func taskBegins(named name: String?, at origin: RunLoop.Origin, on thread: Int) -> Int {
        taskCount += 1
        newTask = taskCount
        openTasks[taskCount] = (name ?? "", origin)
        return taskCount
    }

    func taskEnded(_ number: Int) {
        openTasks[number] = nil
    }

    /// A task of a loop that has not ended though everything else has.
    var leakedTask: String? {
        openTasks.min { $0.key < $1.key }.map { "task \($0.value.name), which was started at \($0.value.origin)" }
    }

    func jobCame(_ job: UnownedJob, from thread: Int) {
        let running = tasks[thread].flatMap { $0.isRunning ? $0.lane : nil }
        guard let task = job.taskNumber else {
            // With a job of the runtime, the task that runs lets others go first, or enters an actor.
            if let running { letOthersGoFirst(running) }
            laneOfJob[job.address] = running ?? lane(ofThread: thread, "main")
            return
        }
        let lane = laneOfTask[task] ?? addTask(of: running ?? lane(ofThread: thread, "main"))
        if lane == running { letOthersGoFirst(lane) }
        laneOfTask[task] = lane
        laneOfJob[job.address] = lane
    }

    private func addTask(of parent: Int) -> Int {
        lanes[parent].children += 1
        var name = lanes[parent].name + ".\(lanes[parent].children)"
        if name.first == "*" { name.removeFirst() }
        if let task = newTask.take(), let open = openTasks[task] {
            if !open.name.isEmpty { name = unique(open.name) }
            openTasks[task]!.name = name
        }
        return add(name)
    }

    func nextJob(of jobs: [UnownedJob], on thread: Int) -> Int {
        // Of several jobs of a lane the first one is next.
        var (options, places) = ([Int](), [Int]())
        for (place, job) in jobs.enumerated() {
            let lane = laneOfJob[job.address]!
            guard !options.contains(lane) else { continue }
            options.append(lane)
            places.append(place)
        }
        let last = tasks[thread].flatMap { options.firstIndex(of: $0.lane) }
        let choice = decide(.task, options, usual: usual(of: options, last: last))
        tasks[thread] = (options[choice], true)
        return places[choice]
    }

    func callEnded(on thread: Int) {
        tasks[thread]?.isRunning = false
    }

    func choose(_ what: String, of count: Int) -> Int {
        decide(.possibility, Array(repeating: lane(ofPossibility: what), count: count), usual: 0)
    }

    func draw(_ what: String, usual: Int, in range: ClosedRange<Int>, drawn: Int) -> Int {
        // Not a place like others: the network's are many, and would hide those of the program.
        let lane = lane(ofPossibility: what)
        let step = lanes[lane].steps
        lanes[lane].steps += 1
        var value = strategy.draw(what, step: step, drawn: drawn) ?? usual
        if !range.contains(value) { value = usual }
        mix(value)
        if value != usual { depart(what, step, .possibility(value)) }
        return value
    }

    private func lane(ofPossibility what: String) -> Int {
        if let lane = laneOfPossibility[what] { return lane }
        laneOfPossibility[what] = add(what)
        return laneOfPossibility[what]!
    }
}
