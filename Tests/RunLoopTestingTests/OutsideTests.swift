import Dispatch
import Foundation
import Glibc
import RunLoopExploration
import RunLoopHosts
import RunLoopKit
import RunLoopSimulation
import RunLoopTesting
import TestSupport
import Testing

private typealias RunLoop = RunLoopKit.RunLoop

/// An act that a simulation does not answer, with words of the escape.
private struct Act: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let words: String
    let perform: @Sendable () -> Void

    init(_ name: String, _ words: String, _ perform: @escaping @Sendable () -> Void) {
        (testDescription, self.words, self.perform) = (name, words, perform)
    }

    private static let toDispatch = "hands a block to Dispatch, whose threads are none of the simulation"

    static let all = [
        Act("async", toDispatch) { DispatchQueue.global().async {} },
        Act("async with a barrier", toDispatch) { DispatchQueue(label: "q").async(flags: .barrier) {} },
        Act("async in a group", toDispatch) { DispatchQueue.global().async(group: DispatchGroup()) {} },
        Act("asyncAfter", toDispatch) { DispatchQueue.global().asyncAfter(deadline: .now() + 1000) {} },
        Act("notify", toDispatch) { DispatchGroup().notify(queue: .global()) {} },
        Act("concurrentPerform", toDispatch) { DispatchQueue.concurrentPerform(iterations: 2) { _ in } },
        Act("a source", "makes a source of Dispatch") {
            for _ in 0..<50 { DispatchSource.makeTimerSource().activate() }
        },
        Act("a thread of Foundation", "starts a thread of the system") { Foundation.Thread {}.start() },
        Act("a thread of the C library", "starts a thread of the system") { PlainThread {}.join() },
        Act("a socket", "makes a socket of the system") { close(socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)) },
        Act("an address", "asks the system for the address of \"127.0.0.1\"") {
            var addresses: UnsafeMutablePointer<addrinfo>?
            if getaddrinfo("127.0.0.1", nil, nil, &addresses) == 0 { freeaddrinfo(addresses) }
        },
        Act("a file that is read", "opens the system's file \"/tmp/none/file\"") {
            _ = try? Data(contentsOf: URL(fileURLWithPath: "/tmp/none/file"))
        },
        Act("a stream of the C library", "opens the system's file \"/tmp/none/stream\"") {
            if let file = fopen("/tmp/none/stream", "r") { fclose(file) }
        },
        Act("an installed file that is written", "opens the system's file \"/usr/none/file\"") {
            close(open("/usr/none/file", O_WRONLY))
        },
        Act("a directory", "makes the system's directory \"/tmp/none/directory\"") {
            try? FileManager.default.createDirectory(atPath: "/tmp/none/directory", withIntermediateDirectories: false)
        },
        Act("a file that is removed", "removes the system's file \"/tmp/none/file\"") { unlink("/tmp/none/file") },
    ]
}

/// Posts from outside. Another thread would not have this function among its callers.
@inline(never)
private func postFromOutside(to remote: RunLoop.Remote) {
    _ = remote.perform { _ in }
    withExtendedLifetime(remote) {}
}

@Suite("Acts beyond a simulation")
struct OutsideTests {
    @Test("an act that reaches beyond the simulation is an escape with its caller, once", arguments: Act.all)
    private func acts(_ act: Act) {
        withSimulation { simulation in
            simulation.captureExecutors()
            SimulatedNetwork(simulation).addHost("server") { _ in
                sleep(1)
                for _ in 1...3 { act.perform() }
            }
            simulation.advance(by: .seconds(2))
            guard let escape = simulation.escapes.first, simulation.escapes.count == 1 else {
                Issue.record("\(simulation.escapes)")
                return
            }
            #expect(escape.hasPrefix("server \(act.words)"), "\(escape)")
            #expect(escape.contains(" at 1.000000000, in "), "\(escape)")
            #expect(escape.contains("Act") || escape.contains("PlainThread"), "\(escape)")
            #expect(!simulation.isReproducible && simulation.standing == .escaped([escape]))
        }
    }

    @Test("in a simulation that answers no calls, and outside, none of these acts is an escape")
    func notSimulated() {
        withSimulation { simulation in
            for act in Act.all { act.perform() }
            #expect(simulation.escapes.isEmpty)
        }
        for act in Act.all { act.perform() }
    }

    @Test("threads of the library, files of the kernel and of the installation are no escapes")
    func allowed() {
        withSimulation { simulation in
            simulation.captureExecutors()
            let worker = LoopThread(name: "worker") { loop in loop.perform(afterDelay: .seconds(1)) {} }
            worker.join()
            for path in ["/dev/null", "/proc/self/stat", "/usr/lib/os-release"] { close(open(path, O_RDONLY)) }
            #expect(TimeZone(identifier: "Asia/Tokyo") != nil)
            _ = Locale(identifier: "de_DE").localizedString(forRegionCode: "FR")
            #expect("\(Date())".hasPrefix("2001-01-01"))
            #expect(simulation.escapes.isEmpty, "\(simulation.escapes)")
        }
    }

    @Test("a post from a thread outside is an escape with its caller, also while the loop runs")
    func posts() {
        let (remote, isReady, isDone) = (Log<RunLoop.Remote>(), DispatchSemaphore(value: 0), Flag())
        let poster = PlainThread {
            isReady.wait()
            postFromOutside(to: remote.entries[0])
            isDone.set()
        }
        withSimulation { simulation in
            simulation.captureExecutors()
            remote.append(simulation.loop.remote)
            isReady.signal()
            while !isDone.isSet {}
            simulation.runUntilIdle()
            #expect(simulation.escapes.count == 1)
            let escape = simulation.escapes.first ?? ""
            #expect(
                escape.hasPrefix("a thread outside of the simulation posts to main at 0.000000000, in "), "\(escape)")
            #expect(escape.contains("postFromOutside(to:)"), "\(escape)")
        }
        poster.join()
    }

    @Test("a signal from a thread outside is an escape, unless the time is held for it")
    func signals() {
        for isHeld in [true, false] {
            let (semaphore, isReady) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
            let signaller = PlainThread {
                isReady.wait()
                usleep(1000)
                semaphore.signal()
            }
            withSimulation { simulation in
                simulation.captureExecutors()
                let hold = isHeld ? simulation.hold(for: "the signal") : nil
                isReady.signal()
                semaphore.wait()
                hold?.release()
                #expect(simulation.escapes.isEmpty == isHeld, "\(simulation.escapes)")
                #expect(!simulation.isReproducible)
            }
            signaller.join()
        }
    }

    @Test("a task that a thread outside resumes has left, which is an escape")
    func departures() {
        let (continuation, isReady) = (Log<CheckedContinuation<Void, Never>>(), DispatchSemaphore(value: 0))
        let (resumer, isDone) = (
            PlainThread {
                isReady.wait()
                continuation.entries[0].resume()
            }, DispatchSemaphore(value: 0)
        )
        withSimulation { simulation in
            simulation.captureExecutors()
            Task {
                await withCheckedContinuation { continuation.append($0) }
                isDone.signal()
            }
            simulation.runUntilIdle()
            #expect(simulation.escapes.isEmpty)
            isReady.signal()
            resumer.join()
            #expect(simulation.escapes.count == 1)
            let escape = simulation.escapes.first ?? ""
            #expect(escape.hasPrefix("a thread outside of the simulation resumes task "), "\(escape)")
            #expect(escape.contains(", which continues outside, at 0.000000000, in closure"), "\(escape)")
        }
        isDone.wait()
    }

    @Test("an exploration fails at an act that reaches beyond it")
    func explored() {
        let result = Exploration(schedules: 3, seed: 1).run { simulation in
            simulation.captureExecutors()
            Task { DispatchQueue.global().async {} }
            simulation.runUntilIdle()
        }
        guard case .failed(let finding) = result else {
            Issue.record("nothing failed")
            return
        }
        #expect(finding.fault.kind == .escape && "\(finding)".contains("hands a block to Dispatch"), "\(finding)")
    }
}
