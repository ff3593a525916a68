@_spi(Ports) internal import RunLoopKit

/// The waits among the tasks of several loops.
///
/// The loops' dumps have different times, but there are no false cycles: the number of a task is never another's, and a
/// wait for a value ends only with the task that has it.
struct TaskWaits {
    /// The cycles among the tasks.
    let cycles: [[Console.WaitingTask]]
    private let tasks: [Int: Console.WaitingTask]
    /// The tasks that each task awaits.
    private var awaited: [Int: [Int]] = [:]

    /// - Parameter loops: the names of the loops, and the items of their tasks.
    init(_ loops: [(name: String, tasks: [RunLoop.Dump.Item])]) {
        var tasks: [Int: Console.WaitingTask] = [:]
        for (name, items) in loops {
            for item in items {
                guard let task = item.task else { continue }
                tasks[task.number] = Console.WaitingTask(
                    loop: name, number: task.number, name: item.name, origin: "\(item.origin)")
                for awaiter in task.awaiters {
                    awaited[awaiter, default: []].append(task.number)
                }
            }
        }
        self.tasks = tasks
        cycles = RunLoop.Dump.cyclesOfWaiting(among: loops.flatMap(\.tasks)).map { cycle in
            cycle.compactMap { $0.task.flatMap { tasks[$0.number] } }
        }
    }

    /// Completes tasks whose own loop does not know that they await tasks of others.
    func complete(_ list: inout [Console.Task]) {
        for index in list.indices where list[index].activity == nil {
            guard let other = awaited[list[index].number]?.first.flatMap({ tasks[$0] }) else { continue }
            let name = other.name.map { " \(quoted($0))" } ?? ""
            list[index].activity = "awaits task\(name) (\(other.origin)) of \(other.loop)"
        }
    }
}
