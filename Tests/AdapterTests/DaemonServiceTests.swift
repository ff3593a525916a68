#if Adapters
import Glibc
import Logging
import RunLoopCore
import RunLoopKit
import RunLoopServiceLifecycle
import RunLoopUnix
import ServiceLifecycle
import ServiceLifecycleTestKit
import TestSupport
import Testing

@Suite("A daemon as a service", .timeLimit(.minutes(15)))
struct DaemonServiceTests {
    struct Refused: Error {}

    /// Makes a daemon that notes its stages; without `drains`, only hurry ends its drain.
    private func makeService(
        _ steps: Log<String>, status: Int32 = 0, drains: Bool = true, ready: @escaping @Sendable () -> Void = {}
    ) -> DaemonService {
        DaemonService { loop in
            let daemon = Daemon(loop: loop, manager: try ServiceManager(environment: [:]))
            daemon.onStop(.stopAccepting) { steps("stop accepting") }
            daemon.onStop(.drain, name: "drain") { done in
                steps("drain")
                if drains { done() }
            }
            daemon.onStop(.exit) { steps("exit") }
            if status != 0 { loop.perform { daemon.stop(status: status) } }
            loop.perform { ready() }
            // A leftover item in the loop does not keep the thread.
            loop.add(CustomSource(), forMode: .default)
            return daemon
        }
    }

    @Test("a graceful shutdown stops the daemon in its stages")
    func graceful() async throws {
        let steps = Log<String>()
        let (isReady, ready) = AsyncStream.makeStream(of: Void.self)
        try await testGracefulShutdown { trigger in
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await makeService(steps, ready: { ready.yield() }).run() }
                for await _ in isReady { break }
                #expect(steps.entries.isEmpty)
                trigger.triggerGracefulShutdown()
                try await group.waitForAll()
            }
        }
        #expect(steps.entries == ["stop accepting", "drain", "exit"])
    }

    @Test("a shutdown that comes before the daemon is there is not lost")
    func early() async throws {
        let steps = Log<String>()
        try await testGracefulShutdown { trigger in
            trigger.triggerGracefulShutdown()
            try await makeService(steps).run()
        }
        #expect(steps.entries == ["stop accepting", "drain", "exit"])
    }

    @Test("a cancellation hurries: a drain that does not end is not waited for")
    func cancelled() async throws {
        let steps = Log<String>()
        let (isReady, ready) = AsyncStream.makeStream(of: Void.self)
        let task = Task { try await makeService(steps, drains: false, ready: { ready.yield() }).run() }
        for await _ in isReady { break }
        task.cancel()
        try await task.value
        #expect(steps.entries.last == "exit")
    }

    @Test("a cancellation before the daemon exists leaves only its last stage to run")
    func cancelledEarly() async throws {
        let steps = Log<String>()
        let task = Task {
            while !Task.isCancelled { await Task.yield() }
            try await makeService(steps).run()
        }
        task.cancel()
        try await task.value
        #expect(steps.entries == ["exit"])
    }

    @Test("a cancellation after a graceful shutdown ends the drain, and the last stage is still waited for")
    func cancelledWhileItDrains() async throws {
        let steps = Log<String>()
        let (drains, draining) = AsyncStream.makeStream(of: Void.self)
        let service = DaemonService { loop in
            let daemon = Daemon(loop: loop, manager: try ServiceManager(environment: [:]))
            daemon.onStop(.drain) { (_: Daemon.Completion) in draining.yield() }
            daemon.onStop(.exit) { done in
                // Some passes later: a service that does not wait for the stage has ended by then.
                loop.perform(afterDelay: .milliseconds(20)) {
                    steps("exit")
                    done()
                }
            }
            return daemon
        }
        try await testGracefulShutdown { trigger in
            let task = Task { try await service.run() }
            trigger.triggerGracefulShutdown()
            for await _ in drains { break }
            task.cancel()
            try await task.value
        }
        #expect(steps.entries == ["exit"])
    }

    @Test("items that a failing set-up has left in the loop are gone when the service ends")
    func leftovers() async {
        final class Slow: Sendable {
            let steps: Log<String>
            init(_ steps: Log<String>) { self.steps = steps }
            deinit {
                usleep(20_000)
                steps("gone")
            }
        }
        let steps = Log<String>()
        let service = DaemonService { loop in
            let slow = Slow(steps)
            loop.add(CustomSource { _ in withExtendedLifetime(slow) {} }, forMode: .common)
            throw Refused()
        }
        await #expect(throws: Refused.self) { try await service.run() }
        #expect(steps.entries == ["gone"])
    }

    @Test("a status other than zero and a set-up that fails end the service with an error")
    func failures() async {
        let steps = Log<String>()
        let failure = await #expect(throws: DaemonService.ExitError.self) {
            try await makeService(steps, status: 3).run()
        }
        #expect(failure?.status == 3)
        #expect(steps.entries.last == "exit")
        await #expect(throws: Refused.self) { try await DaemonService { _ in throw Refused() }.run() }
    }

    @Test("in a service group, when one service ends the daemon is stopped")
    func group() async throws {
        struct Brief: Service {
            func run() async throws {}
        }
        let steps = Log<String>()
        let group = ServiceGroup(
            configuration: .init(
                services: [
                    .init(service: makeService(steps)),
                    .init(service: Brief(), successTerminationBehavior: .gracefullyShutdownGroup),
                ], logger: Logger(label: "group") { _ in SwiftLogNoOpLogHandler() }))
        try await group.run()
        #expect(steps.entries == ["stop accepting", "drain", "exit"])
    }
}
#endif
