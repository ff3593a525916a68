// The costs of tasks. In a file of its own, because declarations in main.swift are isolated to the main actor, and so
// would be the tasks' closures.
import Glibc
@_spi(Ports) import RunLoopKit
import RunLoopSimulation
import RunLoopUnix

nonisolated(unsafe) private var observed = 0
@inline(never) private func observe(_ number: Int) { observed &+= number }

/// An actor that lives on the loop.
private actor Resident {
    let home: RunLoop.Executor
    private var calls = 0
    nonisolated var unownedExecutor: UnownedSerialExecutor { home.serial.asUnownedSerialExecutor() }

    init(_ home: RunLoop.Executor) {
        self.home = home
    }

    func call() { calls &+= 1 }

    func callOther(_ other: Resident, times: Int) async {
        for _ in 0..<times { await other.call() }
    }
}

/// Makes two connected sockets.
func sockets() -> (Int32, Int32) {
    var ends: [Int32] = [0, 0]
    precondition(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0, "no sockets")
    return (ends[0], ends[1])
}

/// Makes a peer that sends a message, waits for the answer, and so on; it blocks only in calls of the C library.
func converse(_ descriptor: Int32, times: Int) -> LoopThread {
    LoopThread(name: "peer") { _ in
        var message = [UInt8](repeating: 7, count: 64)
        for _ in 0..<times {
            precondition(write(descriptor, message, 64) == 64, "the server has gone")
            var count = 0
            while count < 64 { count += read(descriptor, &message, 64) }
        }
        close(descriptor)
    }
}

/// Sends back received bytes from a connection's handler.
private func echo(_ loop: RunLoop, _ count: Int) {
    let (server, peer) = sockets()
    let connection = Connection(adopting: server, on: loop) { connection, bytes in
        connection.write(bytes)
        return bytes.count
    }
    connection.closeHandler = { _, _ in loop.stop() }
    try? connection.start()
    let thread = converse(peer, times: count)
    loop.run(in: .default)
    thread.join()
}

/// The name of each operation, and a function that performs it the given number of times.
let taskOperations: [(name: String, run: @Sendable (RunLoop, Int) -> Void)] = [
    (
        "yield of a task",
        { loop, count in
            try? loop.run { for _ in 0..<count { await Task.yield() } }
        }
    ),
    (
        "a task's call of an actor of the loop, and back",
        { loop, count in
            let resident = Resident(loop.remote.executor())
            try? loop.run {
                for index in 0..<count {
                    await resident.call()
                    // Otherwise the task would not need to come back.
                    observe(index)
                }
            }
        }
    ),
    (
        "a call between actors of one loop",
        { loop, count in
            let home = loop.remote.executor()
            let (one, other) = (Resident(home), Resident(home))
            try? loop.run { await one.callOther(other, times: count) }
        }
    ),
    (
        "sleep of a task, on virtual time",
        { _, count in
            withSimulation { simulation in
                let (loop, clock) = (simulation.loop, simulation.loop.clock)
                try? loop.run { for _ in 0..<count { try await clock.sleep(for: .seconds(1)) } }
            }
        }
    ),
    (
        "the life of a task that sleeps once, on virtual time",
        { _, count in
            withSimulation { simulation in
                let (loop, clock) = (simulation.loop, simulation.loop.clock)
                var left = count
                for _ in 0..<count {
                    loop.task {
                        try await clock.sleep(for: .seconds(1))
                    } then: { _ in
                        left -= 1
                        if left == 0 { loop.stop() }
                    }
                    loop.run(in: .default, until: loop.now)
                }
                loop.run(in: .default)
            }
        }
    ),
    (
        "a task that waits in a continuation for a delayed call, on virtual time",
        { _, count in
            withSimulation { simulation in
                let loop = simulation.loop
                try? loop.run {
                    for _ in 0..<count {
                        await withUnsafeContinuation { continuation in
                            loop.perform(afterDelay: .seconds(1)) { continuation.resume() }
                        }
                    }
                }
            }
        }
    ),
    (
        "an echo by a connection's handler",
        { loop, count in echo(loop, count) }
    ),
    (
        "an echo by a connection's handler, with a flight recorder",
        { loop, count in
            let recorder = try! FlightRecorder(loop)
            withExtendedLifetime(recorder) { echo(loop, count) }
        }
    ),
    (
        "an echo by a connection's handler, with a watcher",
        { loop, count in
            let watcher = SilentWatcher()
            loop.addWatcher(watcher)
            echo(loop, count)
            loop.removeWatcher(watcher)
        }
    ),
    (
        "an echo by a handler of SwiftNIO",
        { loop, count in echoByChannel(loop, count) }
    ),
    (
        "an echo by a task",
        { loop, count in
            let (server, peer) = sockets()
            let connection = Connection(adopting: server, on: loop)
            let thread = converse(peer, times: count)
            try? loop.run {
                try await connection.withStream { stream in
                    while try await stream.receive({ bytes in
                        stream.write(bytes)
                        return bytes.count
                    }) {}
                }
            }
            thread.join()
        }
    ),
]

/// Follows everything but the trace, and does nothing.
private final class SilentWatcher: LoopWatcher {
    var events: RunLoop.WatchedEvent.Groups { .activity }
    func watch(_ event: RunLoop.WatchedEvent) {}
}
