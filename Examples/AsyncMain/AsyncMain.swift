// An asynchronous program whose main thread runs a loop: tasks, the main actor and timers share the thread.

import RunLoopKit

/// A dashboard on the main actor, updated by a timer of the loop.
@MainActor
final class Dashboard {
    private(set) var lines: [String] = []

    func show(_ line: String) {
        lines.append(line)
        print(line)
    }
}

@main
struct AsyncMain {
    static func main() throws {
        let loop = RunLoop.main
        if CommandLine.arguments.contains("unserved") { return forgetTheMainActor(loop) }
        loop.serveMainActor()
        if CommandLine.arguments.contains("nested") { return waitForLaterJob(loop) }
        try loop.run { try await work(on: loop) }
    }

    /// Shows the mistake of omitting that line: the loop reports once that the tasks do not run.
    static func forgetTheMainActor(_ loop: RunLoop) {
        for _ in 0..<3 { Task { @MainActor in print("never") } }
        loop.perform(afterDelay: .milliseconds(50)) { Task { @MainActor in print("never") } }
        loop.run()
    }

    /// Runs the loop in a job of the main actor until a later job has ended, which ends the process with a message.
    static func waitForLaterJob(_ loop: RunLoop) {
        Task { @MainActor in runAnotherJob() }
        loop.run()
    }

    @MainActor
    static func runAnotherJob() {
        try? RunLoop.main.run { @MainActor in print("never") }
    }

    @MainActor
    static func work(on loop: RunLoop) async throws {
        let dashboard = Dashboard()
        // A callback of the main loop is on the main actor's thread, and may assume its isolation.
        let timer = LoopBound(every: .milliseconds(10)) {
            MainActor.assumeIsolated { dashboard.show("tick \(dashboard.lines.count)") }
        }
        // The body of a scope has the isolation of its caller: the main actor.
        try await loop.withTimeout(.seconds(60)) {
            while dashboard.lines.count < 3 { try await loop.clock.sleep(for: .milliseconds(1)) }
            MainActor.preconditionIsolated()
        }
        timer.value.invalidate()

        // Work on other threads returns to the main actor.
        let total = try await loop.withTasks { tasks in
            let halves = [1...500, 501...1_000].map { numbers in
                tasks.start {
                    let half = await sum(of: numbers)
                    MainActor.preconditionIsolated()
                    return half
                }
            }
            var total = 0
            for half in halves { total += try await half.value }
            return total
        }
        dashboard.show("sum \(total)")
    }

    @concurrent
    static func sum(of numbers: ClosedRange<Int>) async -> Int { numbers.reduce(0, +) }
}

extension LoopBound<Timer> {
    /// A repeating timer of the main loop.
    @MainActor
    convenience init(every interval: Duration, _ tick: @escaping () -> Void) {
        self.init(Timer.scheduledTimer(withTimeInterval: interval, repeats: true) { _ in tick() }, loop: .main)
    }
}
