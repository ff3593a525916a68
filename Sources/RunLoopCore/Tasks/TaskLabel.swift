internal import CShims

/// The label of a loop's task in reports: its name, and where it was started. A task without a name goes by the
/// function that started it.
package struct TaskLabel: Sendable, CustomStringConvertible {
    package let name: String?
    package let origin: RunLoop.Origin
    let function: StaticString

    /// For example `task "poller" (Daemon/main.swift:12)`, or `task in serve() (Daemon/main.swift:12)`.
    package var description: String { "task \(name.map { quoted($0) } ?? "in \(function)") (\(origin))" }

    /// The labels of tasks that have not ended, by the addresses of their jobs: a job may be on any executor, and does
    /// not carry its task's name. No other job has the address meanwhile.
    fileprivate static let all = Locked<[UInt: TaskLabel]>([:])

    static func set(_ label: TaskLabel?, for job: UnownedJob) {
        all.withLock { $0[job.address] = label }
    }
}

extension UnownedJob {
    /// Where it is in memory; no other job is there as long as it waits.
    // A job is a pointer to it.
    package var address: UInt { unsafeBitCast(self, to: UInt.self) }

    static func == (left: UnownedJob, right: UnownedJob) -> Bool { left.address == right.address }

    /// The number of its task; `nil` for a job of the runtime, with which a task yields or enters an actor.
    package var taskNumber: Int? {
        let number = rlk_task_number(address)
        return number == 0 ? nil : Int(number)
    }

    /// The label of its task, if that is a loop's and has not ended.
    package var label: TaskLabel? { TaskLabel.all.withLock { $0[address] } }

    /// How reports name its task, for example `task "poller" (Daemon/main.swift:12)`; `task 12` if it is no loop's.
    package var task: String {
        label.map { "\($0)" } ?? taskNumber.map { "task \($0)" } ?? "a job of the runtime"
    }
}

extension Task {
    /// The job of the task: the same pointer. The runtime's tasks are jobs.
    var job: UnownedJob { unsafeBitCast(self, to: UnownedJob.self) }
}
