@_spi(Ports) internal import RunLoopKit

/// The waits among the tasks of several loops.
///
/// The loops' dumps have different times, but there are no false cycles: the number of a task is never another's, and a
/// wait for a value ends only with the task that has it.
struct TaskWaits {
    private var graph = WaitGraph()
    private var tasks: [Int: Console.WaitingTask] = [:]
    /// The tasks that each task awaits.
    private var awaited: [Int: [Int]] = [:]

    /// - Parameter loops: the names of the loops, and the items of their tasks.
    init(_ loops: [(name: String, tasks: [RunLoop.Dump.Item])]) {
        for (name, items) in loops {
            for item in items {
                guard let task = item.task else { continue }
                tasks[task.number] = Console.WaitingTask(
                    loop: name, number: task.number, name: item.name, origin: "\(item.origin)")
                for awaiter in task.awaiters {
                    graph.add(awaiter, awaits: task.number)
                    awaited[awaiter, default: []].append(task.number)
                }
            }
        }
    }

    var cycles: [[Console.WaitingTask]] { graph.cycles.map { $0.compactMap { tasks[$0] } } }

    /// Completes tasks whose own loop does not know that they await tasks of others.
    func complete(_ list: inout [Console.Task]) {
        for index in list.indices where list[index].activity == nil {
            guard let other = awaited[list[index].number]?.first.flatMap({ tasks[$0] }) else { continue }
            let name = other.name.map { " \(quoted($0))" } ?? ""
            list[index].activity = "awaits task\(name) (\(other.origin)) of \(other.loop)"
        }
    }
}
