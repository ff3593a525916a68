@_spi(Ports) import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

/// Tasks that never end, kept so that LeakSanitizer does not report them.
private let kept = Locked<[Task<Void, any Error>]>([])

@Suite("Tasks that wait, in a dump")
struct WaitingTaskTests {
    private final class Tasks {
        var first: Task<Void, any Error>?
        var second: Task<Void, any Error>?
        var third: Task<Void, any Error>?
    }

    private func details(_ loop: RunLoop) -> [String: String] {
        let tasks = loop.dump().items.filter { $0.kind == .task }
        return Dictionary(uniqueKeysWithValues: tasks.map { ($0.name ?? "", $0.detail ?? "nothing known") })
    }

    private func settle(_ loop: RunLoop) {
        loop.run(in: .default, until: loop.now + .milliseconds(1))
    }

    @Test("a task that awaits the value of another one names it")
    func value() {
        withSimulation { simulation in
            let loop = simulation.loop
            let line: UInt32 = #line
            let sleeper = loop.task(name: "sleeper") { try await loop.clock.sleep(for: .seconds(5)) }
            loop.task(name: "one") { try await sleeper.value }
            loop.task(name: "two") { _ = await sleeper.result }
            settle(loop)
            let awaits = "awaits task \"sleeper\" (RunLoopCoreTests/WaitingTaskTests.swift:\(line + 1))"
            #expect(details(loop) == ["sleeper": "sleeps until 5.000000000", "one": awaits, "two": awaits])
            #expect(loop.dump().cyclesOfWaiting.isEmpty)
            #expect(simulation.runUntilIdle() == .done)
            #expect(details(loop).isEmpty)
        }
    }

    @Test("a dump marks a task that is about to run, and not one that waits for something else")
    func elsewhere() {
        withSimulation { simulation in
            let loop = simulation.loop
            var continuation: CheckedContinuation<Void, Never>?
            loop.task(name: "elsewhere") { await withCheckedContinuation { continuation = $0 } }
            settle(loop)
            loop.task(name: "new") { #expect(details(loop)["new"] == "runs") }
            #expect(details(loop) == ["elsewhere": "nothing known", "new": "is ready"])
            continuation?.resume()
            #expect(simulation.runUntilIdle() == .done)
        }
    }

    @Test("two tasks that await each other's value are a cycle, and a third that awaits one of them is not in it")
    func deadlock() {
        withSimulation { simulation in
            let (loop, tasks) = (simulation.loop, Tasks())
            let line: UInt32 = #line
            tasks.first = loop.task(name: "first") { try await tasks.second!.value }
            tasks.second = loop.task(name: "second") { try await tasks.first!.value }
            tasks.third = loop.task(name: "third") { try await tasks.first!.value }
            kept.withLock { $0 += [tasks.first!, tasks.second!, tasks.third!] }
            settle(loop)
            let dump = loop.dump()
            #expect(dump.cyclesOfWaiting.map { $0.map(\.name) } == [["first", "second"]])
            let file = "RunLoopCoreTests/WaitingTaskTests.swift"
            let (first, second) = ("task \"first\" (\(file):\(line + 1))", "task \"second\" (\(file):\(line + 2))")
            #expect("\(dump)".contains("\ncycle of waiting: \(first) awaits \(second) awaits \(first)\n"), "\(dump)")
        }
    }

    @Test("a task that awaits itself is a cycle")
    func itself() {
        withSimulation { simulation in
            let (loop, tasks) = (simulation.loop, Tasks())
            tasks.first = loop.task(name: "first") { try await tasks.first!.value }
            kept.withLock { $0.append(tasks.first!) }
            settle(loop)
            #expect(loop.dump().cyclesOfWaiting.map { $0.map(\.name) } == [["first"]])
        }
    }

    @Test("a scope waits for its tasks, a task for the value of a child: both can be part of a cycle")
    func scopes() {
        withSimulation { simulation in
            let (loop, tasks) = (simulation.loop, Tasks())
            tasks.first = loop.task(name: "outer") {
                try await loop.withTasks { scope in
                    let child = scope.start(name: "child") { try await tasks.second!.value }
                    tasks.second = loop.task(name: "helper") { try await child.value }
                }
            }
            tasks.third = loop.task(name: "root") { try await tasks.first!.value }
            settle(loop)
            let file = "(RunLoopCoreTests/WaitingTaskTests.swift:"
            let known = details(loop)
            #expect(known["outer"]?.hasPrefix("awaits task \"child\" \(file)") == true, "\(known)")
            #expect(known["child"]?.hasPrefix("awaits task \"helper\" \(file)") == true, "\(known)")
            #expect(known["helper"]?.hasPrefix("awaits task \"child\" \(file)") == true, "\(known)")
            #expect(known["root"]?.hasPrefix("awaits task \"outer\" \(file)") == true, "\(known)")
            #expect(loop.dump().cyclesOfWaiting.map { $0.compactMap(\.name).sorted() } == [["child", "helper"]])
            // The helper's wait can be cancelled, which ends the cycle.
            tasks.second?.cancel()
            #expect(simulation.runUntilIdle() == .done)
            #expect(details(loop).isEmpty)
        }
    }

    @Test("a task that awaits thousands, and one that thousands await")
    func many() {
        withSimulation { simulation in
            let loop = simulation.loop
            let sleeper = loop.task(name: "sleeper") { try await loop.clock.sleep(for: .seconds(5)) }
            for number in 0..<2000 { loop.task(name: "\(number)") { try await sleeper.value } }
            loop.task(name: "scope") {
                try await loop.withTasks { scope in
                    for number in 2000..<4000 { scope.start(name: "\(number)") { try await sleeper.value } }
                }
            }
            settle(loop)
            let known = details(loop)
            #expect(known.values.count { $0.hasPrefix("awaits task \"sleeper\"") } == 4000)
            #expect(known["scope"]?.hasSuffix("and 1997 others") == true)
            #expect(simulation.runUntilIdle() == .done)
        }
    }
}
