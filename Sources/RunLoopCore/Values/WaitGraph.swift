/// A graph of tasks, by their numbers, and the tasks that they wait for.
struct WaitGraph {
    private var awaited: [Int: Set<Int>] = [:]

    mutating func add(_ task: Int, awaits other: Int) {
        awaited[task, default: []].insert(other)
    }

    /// The cycles of the graph: each task waits for the next one, and the last for the first, which has the smallest
    /// number. A task is in at most one, the shortest that contains its first task. O(tasks + waits) if there are none.
    var cycles: [[Int]] {
        var rest = knots()
        var found: [[Int]] = []
        for start in rest.keys.sorted() where rest[start] != nil {
            guard let cycle = shortestCycle(from: start, among: rest) else { continue }
            assert(cycle.min() == start && cycle.first == start, "a cycle begins with its first task")
            for task in cycle { rest[task] = nil }
            found.append(cycle)
        }
        return found
    }

    /// Returns the graph without the tasks that do not wait, without tasks that wait only for them, and so on.
    private func knots() -> [Int: Set<Int>] {
        var waiting: [Int: [Int]] = [:]
        for (task, others) in awaited { for other in others { waiting[other, default: []].append(task) } }
        var counts = awaited.mapValues(\.count)
        var free = waiting.keys.filter { counts[$0] == nil }
        while let task = free.popLast() {
            for waiter in waiting[task, default: []] {
                counts[waiter]! -= 1
                assert(counts[waiter]! >= 0, "a task waits for fewer others than it should")
                if counts[waiter] == 0 { free.append(waiter) }
            }
        }
        return awaited.filter { counts[$0.key]! > 0 }
    }

    private func shortestCycle(from start: Int, among rest: [Int: Set<Int>]) -> [Int]? {
        var cameFrom: [Int: Int] = [:]
        var next = [start]
        while !next.isEmpty {
            var reached: [Int] = []
            for task in next {
                for other in rest[task, default: []].sorted() {
                    if other == start {
                        var cycle = [task]
                        while let last = cycle.last, last != start { cycle.append(cameFrom[last]!) }
                        return cycle.reversed()
                    }
                    // A task with a smaller number has been a start already.
                    if other > start, rest[other] != nil, cameFrom[other] == nil {
                        cameFrom[other] = task
                        reached.append(other)
                    }
                }
            }
            next = reached
        }
        return nil
    }
}
