import RunLoopKit
import RunLoopSimulation

extension Program {
    /// Programs that throw nothing: one reaches a deadlock, one leaves a task behind, and one ends the process.
    static let unended = [askingInACircle, replacedWaiter, halfMadeEngine]

    /// Fails if each of the three services has begun with a request before any of them asks the next one: a deadlock.
    private static let askingInACircle = Program(
        name: "asking-in-a-circle",
        bug: "A service that serves one at a time asks another one, which may ask it in turn."
    ) { simulation, isMended in
        let services = (0..<3).map { _ in TaskLock() }
        for index in services.indices {
            simulation.loop.task(name: "client \(index)") {
                let (service, next) = (services[index], services[(index + 1) % services.count])
                await work(7 * index)
                try await service.lock()
                await work(1)
                if isMended { service.unlock() }
                try await next.lock()
                await work(1)
                next.unlock()
                if !isMended { service.unlock() }
            }
        }
        simulation.runUntilIdle()
    }

    /// Fails if the second task asks before the first one has its answer: the first one waits forever, and does not
    /// notice its cancellation. A timer is pending, so this is a leak and not a deadlock.
    private static let replacedWaiter = Program(
        name: "replaced-waiter",
        bug: "A connection remembers one who waits for an answer; a second one takes its place."
    ) { simulation, isMended in
        let loop = simulation.loop
        let heartbeat = Timer(timeInterval: .seconds(1), repeats: true) { _ in }
        loop.add(heartbeat, forMode: .default)
        var waiting: [UnsafeContinuation<Void, Never>] = []
        for asker in 0...1 {
            loop.task(name: "asker \(asker)") {
                await work(8 * asker)
                loop.task(name: "server") {
                    await work(3)
                    if !waiting.isEmpty { waiting.removeFirst().resume() }
                }
                await withUnsafeContinuation { continuation in
                    if !isMended { waiting = [] }
                    waiting.append(continuation)
                }
            }
        }
        simulation.advance(by: .seconds(3))
    }

    /// Fails if the second user comes while the engine is being made: a trap, which only another process survives.
    private static let halfMadeEngine = Program(
        name: "half-made-engine", bug: "An engine is there for all from the moment when its making begins.", traps: true
    ) { simulation, isMended in
        var (engine, sum) = (nil as Engine?, 0)
        for user in 0...1 {
            simulation.loop.task(name: "user \(user)") {
                await work(6 * user)
                if engine == nil {
                    let new = Engine()
                    if !isMended { engine = new }
                    await work(2)
                    new.table = [1, 2, 3]
                    if engine == nil { engine = new }
                }
                guard let table = engine?.table else { fatalError("the engine has no table yet") }
                sum += table.count
            }
        }
        simulation.runUntilIdle()
        try check(sum == 6, "the sum is \(sum)")
    }

    private final class Engine {
        var table: [Int]?
    }
}
