import RunLoopKit
import RunLoopSimulation

extension Program {
    static let time = [strayTimeout, doubleRetry, lostLease]

    /// Fails if the server answers the first request before the client has armed the timeout for it.
    private static let strayTimeout = Program(
        name: "stray-timeout",
        bug: "A client arms a timeout a step after its request has gone; the answer may be there."
    ) { simulation, isMended in
        let loop = simulation.loop
        let client = Client(loop)
        loop.task(name: "client") {
            client.begin(1)
            if isMended { client.armTimeout() }
            await work(1)
            if !isMended { client.armTimeout() }
            try await client.waitForAnswer()
            try await loop.clock.sleep(until: loop.now + .seconds(3))
            client.begin(2)
            client.armTimeout()
            try await client.waitForAnswer()
        }
        loop.task(name: "server") {
            try await client.waitForRequest(1)
            await work(6)
            client.answer()
            try await client.waitForRequest(2)
            try await loop.clock.sleep(for: .seconds(3))
            client.answer()
        }
        simulation.runUntilIdle()
        try check(client.failed.isEmpty, "requests \(client.failed) were given up though an answer came in time")
    }

    private final class Client {
        private(set) var failed: [Int] = []
        private let loop: RunLoop
        private var current: Int?
        private var begun = 0
        private var timeout: DelayedCall?
        private let changes = Waiters()

        init(_ loop: RunLoop) {
            self.loop = loop
        }

        func begin(_ request: Int) {
            (current, begun) = (request, request)
            changes.wakeAll()
        }

        func armTimeout() {
            timeout = loop.perform(afterDelay: .seconds(5)) { [self] in
                guard let current else { return }
                failed.append(current)
                answer()
            }
        }

        func answer() {
            timeout?.cancel()
            (current, timeout) = (nil, nil)
            changes.wakeAll()
        }

        func waitForRequest(_ request: Int) async throws {
            while begun < request { try await changes.wait() }
        }

        func waitForAnswer() async throws {
            while current != nil { try await changes.wait() }
        }
    }

    /// Fails if at 1 s, when the server's failure and the end of the watchdog's patience fall together, the watchdog's
    /// turn comes before the server's.
    private static let doubleRetry = Program(
        name: "double-retry",
        bug: "A failure that comes after the timeout tries again what the timeout has tried again."
    ) { simulation, isMended in
        let main = simulation.loop.remote
        let (server, watchdog) = (makeThread("server"), makeThread("watchdog"))
        let (current, charges) = (Shared(1), Shared(0))
        @Sendable func retry(_ attempt: Int, afterTimeout: Bool) {
            guard attempt == current.value else { return }
            if isMended || !afterTimeout { current.value += 1 }
            server.perform { _ in charges.value += 1 }
        }
        server.perform { loop in
            loop.perform(afterDelay: .seconds(1)) { main.perform { _ in retry(1, afterTimeout: false) } }
        }
        watchdog.perform { loop in
            loop.perform(afterDelay: .seconds(1)) { main.perform { _ in retry(1, afterTimeout: true) } }
        }
        simulation.runUntilIdle()
        try check(charges.value == 1, "the account was charged \(charges.value) times")
    }

    /// Fails if a drag begins less than 50 ms before the lease is to be renewed.
    private static let lostLease = Program(
        name: "lost-lease", bug: "A lease is renewed by a timer of the default mode, which a drag holds up."
    ) { simulation, isMended in
        let loop = simulation.loop
        loop.addCommonMode(.tracking)
        var isLost = false
        func expire() -> DelayedCall {
            loop.perform(afterDelay: .seconds(3), inModes: .common) { isLost = true }
        }
        var expiry = expire()
        let renewal = Timer(timeInterval: .seconds(2), repeats: true) { _ in
            expiry.cancel()
            expiry = expire()
        }
        loop.add(renewal, forMode: isMended ? .common : .default)
        var random = loop.randomNumbers
        let start = loop.now + .milliseconds(.random(in: 0..<20_000, using: &random))
        simulation.drag(from: start, until: start + .milliseconds(1_050))
        simulation.advance(by: .seconds(25))
        try check(!isLost, "the lease was not renewed in time")
    }
}
