import Foundation
import RunLoopKit
import RunLoopSimulation
import RunLoopTesting
import TestSupport
import Testing

private actor Counter {
    private(set) var count = 0

    func increment() { count += 1 }
}

/// Loops that run until another thread or the clock ends them. On a real machine their steps take time.
@Suite("Tasks and threads that wait without a pause")
struct EndlessTests {
    /// Runs a loop, which another task ends after 1 ms, and checks that it ends then.
    ///
    /// - Parameter loop: continues while its parameter returns `true`.
    private func ends(
        width: Int? = nil, _ loop: @escaping @Sendable (_ isOpen: @escaping @Sendable () -> Bool) async -> Void
    ) {
        withSimulation { simulation in
            simulation.captureExecutors(width: width)
            let isOpen = Log<String>(), date = Log<Int64>()
            Task {
                try await Task.sleep(for: .milliseconds(1))
                isOpen("closed")
            }
            Task {
                await loop { isOpen.entries.isEmpty }
                date.append(simulation.now.nanoseconds)
            }
            simulation.advance(by: .seconds(1))
            #expect(simulation.escapes.isEmpty)
            #expect(date.entries == [1_000_000])
        }
    }

    @Test("a task that yields", arguments: [nil, 2] as [Int?])
    func yields(width: Int?) {
        ends(width: width) { isOpen in while isOpen() { await Task.yield() } }
    }

    @Test("a task of the main actor that yields")
    func yieldsOnMainActor() {
        ends { isOpen in
            await Task { @MainActor in while isOpen() { await Task.yield() } }.value
        }
    }

    @Test("a task that calls an actor", arguments: [nil, 2] as [Int?])
    func calls(width: Int?) {
        ends(width: width) { isOpen in
            let counter = Counter()
            while isOpen() { await counter.increment() }
        }
    }

    @Test("a thread that looks at the clock")
    func looksAtTheClock() {
        ends(width: 2) { isOpen in
            let end = Date() + 0.001
            while Date() < end {}
        }
    }

    @Test("many steps without a pause are no endless work if time passes now and then")
    func manySteps() {
        withSimulation { simulation in
            simulation.captureExecutors()
            let date = Log<Int64>()
            Task {
                let counter = Counter()
                for _ in 1...30 {
                    for _ in 1...50_000 { await counter.increment() }
                    try await Task.sleep(for: .milliseconds(1))
                }
                date.append(simulation.now.nanoseconds)
            }
            simulation.advance(by: .seconds(1))
            #expect(date.entries == [30_000_000])
        }
    }
}
