import RunLoopExploration
import RunLoopKit
import RunLoopSimulation

extension Program {
    /// Structures without locks: each step between two suspensions stands for one atomic instruction.
    static let lockFree = [poppedAndStolen, addedBehindRemoved, reclaimedInUse]

    /// Fails if one job is left, a thief has looked at it, the owner pops it, and then the thief takes it as well.
    private static let poppedAndStolen = Program(
        name: "popped-and-stolen", bug: "The owner of a list of jobs pops the last one without a contest with thieves."
    ) { simulation, isMended in
        let history = History(of: JobsModel(), in: simulation)
        let jobs = Jobs(contestingTheLast: isMended)
        simulation.loop.task(name: "owner") {
            for job in 1...6 {
                await history.record(.push(job), by: "owner") { await jobs.push(job) }
                await work(4)
                if job.isMultiple(of: 2) { await history.record(.pop, by: "owner") { await jobs.pop() } }
            }
            for _ in 0..<2 { await history.record(.pop, by: "owner") { await jobs.pop() } }
        }
        for thief in 1...2 {
            simulation.loop.task(name: "thief \(thief)") {
                for _ in 0..<3 {
                    await work(9 * thief)
                    await history.record(.steal, by: "thief \(thief)") { await jobs.steal() }
                }
            }
        }
        simulation.runUntilIdle()
        try history.check()
    }

    /// The list of Chase and Lev.
    private final class Jobs {
        private var jobs: [Int?] = Array(repeating: nil, count: 16)
        private var (top, bottom) = (0, 0)
        private let contestsTheLast: Bool

        init(contestingTheLast contestsTheLast: Bool) {
            self.contestsTheLast = contestsTheLast
        }

        func push(_ job: Int) async -> Int {
            jobs[bottom] = job
            await work(1)
            bottom += 1
            return job
        }

        func pop() async -> Int? {
            bottom -= 1
            let place = bottom
            await work(1)
            let first = top
            await work(1)
            guard first <= place else {
                bottom = first
                return nil
            }
            guard first == place && contestsTheLast else { return jobs[place] }
            let isWon = top == first
            if isWon { top += 1 }
            await work(1)
            bottom = first + 1
            return isWon ? jobs[place] : nil
        }

        func steal() async -> Int? {
            while true {
                let first = top
                await work(1)
                guard first < bottom else { return nil }
                let job = jobs[first]
                await work(1)
                guard top == first else { continue }
                top += 1
                return job
            }
        }
    }

    /// Fails if a number is to be added behind another one, and that one is removed before the new number is linked.
    private static let addedBehindRemoved = Program(
        name: "added-behind-removed",
        bug: "A number is linked to the one before it, which may have left the list meanwhile."
    ) { simulation, isMended in
        let history = History(of: SetModel(), in: simulation)
        let numbers = SortedList(markingRemoved: isMended)
        func run(_ name: String, after delay: Int, _ operations: [SetModel.Operation]) {
            simulation.loop.task(name: name) {
                await work(delay)
                for operation in operations {
                    await history.record(operation, by: name) {
                        switch operation {
                        case .add(let number): await numbers.add(number)
                        case .remove(let number): await numbers.remove(number)
                        case .contains(let number): await numbers.contains(number)
                        }
                    }
                    await work(3)
                }
            }
        }
        run("first", after: 0, [.add(10), .add(30), .remove(10), .add(20), .contains(30)])
        run("second", after: 40, [.add(15), .remove(20), .contains(15), .remove(30)])
        run("third", after: 70, [.add(25), .contains(20), .contains(25), .contains(15)])
        simulation.runUntilIdle()
        try history.check()
    }

    /// The list of Heller and others.
    private final class SortedList {
        private final class Node {
            let number: Int
            var next: Node?
            var isRemoved = false

            init(_ number: Int, _ next: Node?) {
                (self.number, self.next) = (number, next)
            }
        }

        private let head = Node(.min, nil)
        private let marksRemoved: Bool

        init(markingRemoved marksRemoved: Bool) {
            self.marksRemoved = marksRemoved
        }

        func add(_ number: Int) async -> Bool {
            while true {
                let (before, found) = await place(of: number)
                guard before.next === found, !before.isRemoved else { continue }
                if found?.number == number { return true }
                before.next = Node(number, found)
                return false
            }
        }

        func remove(_ number: Int) async -> Bool {
            while true {
                let (before, found) = await place(of: number)
                guard before.next === found, !before.isRemoved else { continue }
                guard let found, found.number == number else { return false }
                if marksRemoved { found.isRemoved = true }
                before.next = found.next
                return true
            }
        }

        func contains(_ number: Int) async -> Bool {
            let found = await place(of: number).found
            return found?.number == number && found?.isRemoved == false
        }

        /// Returns the node before a number, and the first one not before it.
        private func place(of number: Int) async -> (before: Node, found: Node?) {
            var before = head
            var found = head.next
            await work(1)
            while let node = found, node.number < number {
                (before, found) = (node, node.next)
                await work(1)
            }
            return (before, found)
        }
    }

    /// Fails if a reader has read the place of the settings; a writer replaces them twice, finds the old place unused,
    /// and writes there; and then the reader reads.
    private static let reclaimedInUse = Program(
        name: "reclaimed-in-use",
        bug: "A reader announces the place that it will read, and does not look again whether it is the present one."
    ) { simulation, isMended in
        // A version of the settings is two numbers, which are the same.
        var places = [[1, 1], [0, 0], [0, 0]]
        var (present, free) = (0, [1, 2])
        var announced: [Int?] = [nil, nil]
        var torn: [[Int]] = []
        for reader in announced.indices {
            simulation.loop.task(name: "reader \(reader)") {
                for _ in 0..<3 {
                    var place = present
                    await work(1)
                    announced[reader] = place
                    await work(1)
                    while isMended && present != place {
                        place = present
                        announced[reader] = place
                        await work(1)
                    }
                    let first = places[place][0]
                    await work(1)
                    let read = [first, places[place][1]]
                    if read[0] != read[1] { torn.append(read) }
                    announced[reader] = nil
                    await work(5 + reader)
                }
            }
        }
        simulation.loop.task(name: "writer") {
            var retired: [Int] = []
            for version in 2...6 {
                await work(6)
                retired.removeAll { place in
                    guard !announced.contains(place) else { return false }
                    free.append(place)
                    return true
                }
                guard !free.isEmpty else { continue }
                let place = free.removeFirst()
                places[place][0] = version
                await work(1)
                places[place][1] = version
                await work(1)
                retired.append(present)
                present = place
            }
        }
        simulation.runUntilIdle()
        try check(torn.isEmpty, "a reader has found \(torn)")
    }
}
