// An asynchronous program whose main thread runs a loop: tasks, the main actor and timers share the thread.

import RunLoopKit

/// Lives on the main actor, and is told the time by a timer of the loop.
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
        guard CommandLine.arguments.count == 1 else { return forgetTheMainActor(loop) }
        loop.serveMainActor()
        try loop.run { try await work(clock: loop.clock) }
    }

    /// What happens without that line: the loop says once that nobody runs the tasks.
    static func forgetTheMainActor(_ loop: RunLoop) {
        for _ in 0..<3 { Task { @MainActor in print("never") } }
        loop.perform(afterDelay: .milliseconds(50)) { Task { @MainActor in print("never") } }
        loop.run()
    }

    @MainActor
    static func work(clock: RunLoop.Clock) async throws {
        let dashboard = Dashboard()
        // A callback of the main loop is on the main actor's thread, and may say so.
        let timer = LoopBound(every: .milliseconds(10)) {
            MainActor.assumeIsolated { dashboard.show("tick \(dashboard.lines.count)") }
        }
        while dashboard.lines.count < 3 { try await clock.sleep(for: .milliseconds(1)) }
        timer.value.invalidate()

        // Work elsewhere comes back to the main actor.
        dashboard.show("sum \(await sum(of: 1...1_000))")
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
