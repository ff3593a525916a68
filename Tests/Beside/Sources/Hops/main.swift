// The cost of a way to another thread and back: a table for the page "Beside NIO, Dispatch and async-http-client".

import Dispatch
import NIOCore
import NIOPosix
import RunLoopKit

/// An actor of the loop.
actor Neighbour {
    private let home: RunLoop.Executor
    nonisolated var unownedExecutor: UnownedSerialExecutor { home.serial.asUnownedSerialExecutor() }

    init(on home: RunLoop.Executor) {
        self.home = home
    }

    func call() {}
}

/// An actor without an executor of its own.
actor Stranger {
    func call() {}
}

/// Prints the smallest of nine measurements, in microseconds for one of the trips that `body` makes.
func measure(_ name: String, trips: Int = 10_000, _ body: (Int) async throws -> Void) async rethrows {
    var results: [Duration] = []
    for _ in 0..<9 {
        let begin = ContinuousClock.now
        try await body(trips)
        results.append((ContinuousClock.now - begin) / trips)
    }
    print("| \(name) | \((results.min()! / .microseconds(1) * 100).rounded() / 100) |")
}

/// Makes `count` trips without leaving the thread of the NIO loop in between.
func repeated(
    _ count: Int, on loop: any EventLoop, _ trip: @escaping @Sendable () -> EventLoopFuture<Void>
) -> EventLoopFuture<Void> {
    let done = loop.makePromise(of: Void.self)
    @Sendable func next(_ rest: Int) {
        guard rest > 0 else { return done.succeed() }
        trip().whenSuccess { next(rest - 1) }
    }
    loop.execute { next(count) }
    return done.futureResult
}

func program(on loop: RunLoop) throws {
    let home = loop.remote.executor()
    let (neighbour, stranger) = (Neighbour(on: home), Stranger())
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 2)
    let (nio, other) = (group.next(), group.next())
    let queue = DispatchQueue(label: "hops")
    print("| there and back | µs |\n|---|---:|")
    try loop.run {
        await measure("a task of the loop calls an actor of the loop") {
            for _ in 0..<$0 { await neighbour.call() }
        }
        await measure("a task of the loop calls an actor that has no executor of its own") {
            for _ in 0..<$0 { await stranger.call() }
        }
        await measure("a task of the loop awaits a block on a Dispatch queue") {
            for _ in 0..<$0 {
                await withUnsafeContinuation { continuation in queue.async { continuation.resume() } }
            }
        }
        try await measure("a task of the loop awaits a future of a NIO loop") {
            for _ in 0..<$0 { try await nio.submit {}.get() }
        }
        let remote = loop.remote
        try await Task.detached {
            try await measure("a task of Swift's own threads awaits a block on the loop") {
                for _ in 0..<$0 { try await remote.run { _ in } }
            }
        }.value
        try await measure("a NIO loop posts to the loop, which keeps a promise") {
            try await repeated($0, on: nio) {
                let promise = nio.makePromise(of: Void.self)
                remote.perform { _ in promise.succeed() }
                return promise.futureResult
            }.get()
        }
        try await measure("a NIO loop asks another NIO loop") {
            try await repeated($0, on: nio) { other.submit {}.hop(to: nio) }.get()
        }
    }
    try group.syncShutdownGracefully()
}

try program(on: .current)
