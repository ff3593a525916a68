import Foundation
import RunLoopExploration
import RunLoopHosts
import RunLoopKit
import RunLoopSimulation
import RunLoopTesting
import Synchronization

// Prints whether a simulation answers the calls that depend on how its program is linked; see Tests/linking-checks.

/// A wait that is cancelled before it has entered the actor is lost.
private actor Gate {
    private var waits: [Int: CheckedContinuation<Void, Never>] = [:]

    private func enter(_ number: Int) async {
        await withCheckedContinuation { waits[number] = $0 }
    }

    private func cancel(_ number: Int) { waits.removeValue(forKey: number)?.resume() }

    nonisolated func wait(_ number: Int) async {
        await withTaskCancellationHandler {
            await enter(number)
        } onCancel: {
            Task { await cancel(number) }
        }
    }
}

private struct Lost: Error {}

@main
enum Linking {
    static func main() {
        print("an idle actor is a place: \(isLostWaitFound())")
        let lines = Mutex<[String]>([])
        withSimulation { simulation in
            simulation.captureExecutors()
            SimulatedNetwork(simulation).addHost("server", environment: ["WHO": "server"]) { _ in
                let variable = getenv("WHO").map { String(cString: $0) }
                lines.withLock { $0.append("getenv: \(variable ?? "nobody")") }
                let variables = ProcessInfo.processInfo.environment
                lines.withLock { $0.append("Foundation's environment: \(variables["WHO"] ?? "nobody")") }
            }
            Task {
                let begin = Date()
                try await Task.sleep(for: .seconds(86_400))
                let isExact = Date() == begin + 86_400
                lines.withLock { $0.append("a sleep of a day is exact: \(isExact)") }
            }
            simulation.runUntilIdle()
            lines.withLock { $0 += simulation.escapes }
        }
        for line in lines.withLock({ $0 }) { print(line) }
    }

    /// Returns `true` if an exploration finds that another task overtakes one on its way into an idle actor.
    private static func isLostWaitFound() -> Bool {
        let result = Exploration(schedules: 100, seed: 1).run { simulation in
            simulation.captureExecutors()
            let gate = Gate()
            let hasEnded = Atomic(false)
            let task = Task {
                await gate.wait(1)
                hasEnded.store(true, ordering: .relaxed)
            }
            Task { task.cancel() }
            simulation.runUntilIdle()
            guard hasEnded.load(ordering: .relaxed) else { throw Lost() }
        }
        return if case .failed(let finding) = result { finding.fault.kind == .expectation } else { false }
    }
}
