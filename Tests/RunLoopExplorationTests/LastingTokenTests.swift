import RunLoopExploration
import RunLoopHosts
@_spi(Ports) import RunLoopKit
import RunLoopSimulation
import RunLoopUnix
import TestSupport
import Testing

/// A part of a program that is independent of the rest.
private enum Bystander: CaseIterable {
    case task, tasks, timer, delayedCall, thread, choice

    func join(_ simulation: Simulation) {
        let loop = simulation.loop
        switch self {
        case .task: start(1, on: loop)
        case .tasks: start(4, on: loop)
        case .timer:
            var fires = 0
            let timer = Timer(timeInterval: .milliseconds(1), repeats: true) { timer in
                fires += 1
                if fires == 8 { timer.invalidate() }
            }
            loop.add(timer, forMode: .common)
        case .delayedCall: loop.perform(afterDelay: .milliseconds(2)) {}
        case .thread:
            let thread = LoopThread(name: "bystander") { start(2, on: $0) }
            thread.remote.perform { start(1, on: $0) }
        case .choice:
            loop.perform { _ = simulation.choice("something else", of: [1, 2, 3]) }
        }
    }
}

private func start(_ count: Int, on loop: RunLoop) {
    for _ in 0..<count {
        loop.task {
            for _ in 1...3 { await Task.yield() }
            try? await loop.clock.sleep(for: .milliseconds(3))
        }
    }
}

@Suite("Tokens that last")
struct LastingTokenTests {
    /// Finds the fault of a program, and checks that its token fails in the same way with each bystander.
    private func check(
        _ exploration: Exploration = Exploration(limits: .init(reportsDeadlocks: false, reportsLeaks: false)),
        location: SourceLocation = #_sourceLocation, _ program: (Simulation) throws -> Void
    ) throws {
        guard case .failed(let finding) = exploration.run(program) else {
            return #expect(Bool(false), "nothing was found", sourceLocation: location)
        }
        #expect(!finding.token.departures.isEmpty, "\(finding)", sourceLocation: location)
        for bystander in Bystander.allCases {
            let fault = exploration.replay(finding.token) { simulation in
                bystander.join(simulation)
                try program(simulation)
            }
            let fails = fault?.kind == finding.fault.kind && fault?.description == finding.fault.description
            #expect(fails, "with a \(bystander): \(String(describing: fault)); \(finding)", sourceLocation: location)
        }
    }

    @Test("unnamed tasks")
    func tasks() throws {
        try check { simulation in
            var (isReady, isUsedTooEarly) = (false, false)
            simulation.loop.task {
                await Task.yield()
                isReady = true
            }
            simulation.loop.perform(afterDelay: .milliseconds(1)) {}
            simulation.loop.task {
                await Task.yield()
                if !isReady { isUsedTooEarly = true }
            }
            simulation.loop.task { await Task.yield() }
            simulation.runUntilIdle()
            guard !isUsedTooEarly else { throw Broken(description: "it was used before it was ready") }
        }
    }

    @Test("threads that post to one another")
    func threads() throws {
        try check { simulation in
            let main = simulation.loop.remote
            let log = Log<String>()
            for name in ["first", "second"] {
                let thread = LoopThread(name: name) { $0.add(CustomSource(), forMode: .default) }
                thread.remote.perform { _ in main.perform { _ in log(name) } }
            }
            simulation.advance(by: .milliseconds(100))
            guard log.entries == ["first", "second"] else { throw Broken(description: "the second was first") }
        }
    }

    @Test("choices made by a task")
    func choices() throws {
        try check { simulation in
            var losses = 0
            for name in ["a", "b"] {
                simulation.loop.task(name: name) {
                    for _ in 1...4 {
                        if simulation.mayHappen("a message is lost"), name == "b" { losses += 1 }
                        try await simulation.loop.clock.sleep(for: .milliseconds(1))
                    }
                }
            }
            simulation.runUntilIdle()
            guard losses != 2 else { throw Broken(description: "b has lost two messages") }
        }
    }

    @Test("events that may happen at any moment")
    func occasions() throws {
        try check { simulation in
            let (isOpen, isClosed) = (Flag(), Flag())
            simulation.mayHappen("the file is closed") { if isOpen.isSet { isClosed.set() } }
            let timer = Timer(timeInterval: .milliseconds(2), repeats: true) { _ in }
            simulation.loop.add(timer, forMode: .default)
            simulation.loop.task {
                try await simulation.loop.clock.sleep(for: .milliseconds(5))
                isOpen.set()
                await Task.yield()
                if isClosed.isSet { throw CancellationError() }
            }
            simulation.advance(by: .milliseconds(9))
            guard !isClosed.isSet else { throw Broken(description: "it was closed while it was open") }
        }
    }

    @Test("drags")
    func drags() throws {
        let exploration = Exploration(limits: .init(latestFire: .milliseconds(5)))
        guard
            case .failed(let finding) = exploration.run({ simulation in
                let timer = Timer(timeInterval: .milliseconds(2), repeats: true) { _ in }
                timer.name = "clock"
                simulation.loop.add(timer, forMode: .default)
                // Makes each drag begin after a call of the timer.
                simulation.advance(by: .milliseconds(3))
                simulation.mayDrag(for: .milliseconds(9))
                simulation.advance(by: .milliseconds(20))
            })
        else { return #expect(Bool(false), "nothing was found") }
        #expect(finding.token.departures.map(\.place) == ["main.clock: a drag begins"], "\(finding)")
    }

    @Test("timers with the same name, each for one fire, from two places")
    func sameNames() throws {
        try check { simulation in
            let fires = Counter()
            for number in 1...10 {
                let date = simulation.now + .milliseconds(2 * number)
                let timer =
                    number % 2 == 0
                    ? Timer(fire: date, interval: .zero, repeats: false) { _ in fires.add() }
                    : Timer(fire: date, interval: .zero, repeats: false) { _ in fires.add() }
                timer.name = "heartbeat"
                simulation.loop.add(timer, forMode: .default)
            }
            let crash = Locked<Int?>(nil)
            simulation.mayHappen("the store crashes") { crash.withLock { $0 = fires.value } }
            simulation.advance(by: .milliseconds(21))
            guard crash.withLock(\.self) != 4 else { throw Broken(description: "it has crashed") }
        }
    }
}
