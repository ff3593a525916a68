internal import CShims

/// The label of a loop's task in reports: its name, and the place where it was started. For a task without a name,
/// reports show the function that started it.
struct TaskLabel: Sendable, CustomStringConvertible {
    let name: String?
    let origin: RunLoop.Origin
    let function: StaticString

    /// The label in words, for example `task "poller" (Daemon/main.swift:12)`, or `task in serve()
    /// (Daemon/main.swift:12)`.
    var description: String { "task \(name.map { quoted($0) } ?? "in \(function)") (\(origin))" }

    /// The labels of running tasks, by the addresses of their jobs: a job may be on any executor, and does not carry
    /// its task's name. No other job has the address meanwhile.
    fileprivate static let all = Locked<[UInt: TaskLabel]>([:])

    static func set(_ label: TaskLabel?, for job: UnownedJob) {
        all.withLock { labels in
            assert(label == nil || labels[job.address] == nil, "a task has the label of another")
            labels[job.address] = label
        }
    }
}

extension UnownedJob {
    /// The address of the job, and of its task, whose label it finds. No other job has it as long as this one waits.
    // A job is a pointer to itself.
    @_spi(Ports) public var address: UInt { unsafeBitCast(self, to: UInt.self) }

    static func == (left: UnownedJob, right: UnownedJob) -> Bool { left.address == right.address }

    /// The number of the job's task; `nil` for a job of the runtime, with which a task yields or enters an actor.
    @_spi(Ports) public var taskNumber: Int? {
        let number = rlk_task_number(address)
        return number == 0 ? nil : Int(number)
    }

    /// The label of the job's task, if that is a loop's and has not ended.
    var label: TaskLabel? { TaskLabel.all.withLock { $0[address] } }

    /// The name of the job's task in reports, for example `task "poller" (Daemon/main.swift:12)`; `task 12` if it is no
    /// loop's.
    @_spi(Ports) public var task: String {
        label.map { "\($0)" } ?? taskNumber.map { "task \($0)" } ?? "a job of the runtime"
    }
}

extension Task {
    /// The job of the task, which is the same pointer: the runtime's tasks are jobs.
    var job: UnownedJob { unsafeBitCast(self, to: UnownedJob.self) }
}

extension UnsafeCurrentTask {
    var job: UnownedJob { unsafeBitCast(self, to: UnownedJob.self) }
}
