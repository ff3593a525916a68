import CShims
import Glibc
@_spi(Ports) import RunLoopCore
import RunLoopKit
import TestSupport
import Testing

/// A loop does not survive a fork: the child shares the kernel's objects with its parent.
///
/// Each test forks in a process of its own. The thread that forks is the main thread of the child, which is also how
/// the main loop is tested: in a test run the main thread itself never runs a test.
@Suite("Fork", .timeLimit(.minutes(15)))
struct ForkTests {
    private static let sentence =
        "this run loop was made before a fork; in the child process make a new one, or call exec"

    @Test("a loop that was made before a fork cannot be run in the child")
    func runInChild() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            func run() {
                let loop = RunLoop.current
                loop.add(CustomSource(), forMode: .default)
                endAsChildDoes { loop.run(in: .default, until: .distantPast) }
            }
            run()
        }
        let isSaid = says(Self.sentence, result)
        #expect(isSaid)
    }

    @Test("a loop that was made before a fork cannot watch a descriptor in the child")
    func watchInChild() async {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            func watch() {
                let pipe = DescriptorPair()
                defer { withExtendedLifetime(pipe) {} }
                let loop = RunLoop.current
                let source = DescriptorSource(fileDescriptor: pipe.reader, events: .readable) { _, _ in }
                endAsChildDoes { try? loop.add(source, forMode: .default) }
            }
            watch()
        }
        let isSaid = says(Self.sentence, result)
        #expect(isSaid)
    }

    @Test("a loop continues in the parent after a fork")
    func parentGoesOn() async {
        await #expect(processExitsWith: .success) {
            func run() {
                let loop = RunLoop.current
                let fired = Counter()
                Timer.scheduledTimer(withTimeInterval: .milliseconds(1), repeats: true) { timer in
                    if fired.add() == 3 { timer.invalidate() }
                }
                let status = statusOfChild {}
                precondition(status == 0, "the child has failed")
                precondition(loop.run(in: .default) == .finished && fired.value == 3, "the loop does not go on")
            }
            run()
        }
    }

    @Test("a child whose thread had no loop makes one and runs it, and it is the main thread's (R1)")
    func newLoopInChild() async {
        await #expect(processExitsWith: .success) {
            func run() {
                let status = statusOfChild {
                    precondition(rlk_is_main_thread() != 0, "the thread that forks is the child's main thread")
                    let performed = Counter()
                    let main = RunLoop.main
                    precondition(main === RunLoop.current && main === RunLoop.main, "there are two main loops")
                    let remote = main.remote
                    remote.perform { loop in
                        precondition(loop === RunLoop.main, "the main loop's remote is another loop's")
                        performed.add()
                    }
                    var fired = 0
                    Timer.scheduledTimer(withTimeInterval: .milliseconds(1), repeats: true) { timer in
                        fired += 1
                        guard fired < 3 else { return timer.invalidate() }
                        remote.perform { _ in performed.add() }
                    }
                    precondition(main.run(in: .default) == .finished, "the loop does not finish")
                    precondition(fired == 3 && performed.value == 3, "\(fired) fires, \(performed.value) blocks")
                }
                precondition(status == 0, "the child has failed")
            }
            run()
        }
    }

    @Test("a child whose thread had a loop makes a new one, as the sentence says")
    func anotherLoopInChild() async {
        await #expect(processExitsWith: .success) {
            func run() {
                let old = RunLoop.current
                let status = statusOfChild {
                    let new = RunLoop.current
                    precondition(new !== old, "the child is given its parent's loop")
                    var hasFired = false
                    Timer.scheduledTimer(withTimeInterval: .milliseconds(1), repeats: false) { _ in hasFired = true }
                    precondition(new.run(in: .default) == .finished && hasFired, "the new loop does not run")
                }
                precondition(status == 0, "the child has failed")
            }
            run()
        }
    }

    @Test("a child that releases its loop does not affect its parent's loop")
    func teardownInChild() async {
        await #expect(processExitsWith: .success) {
            let isGood = onThread {
                // Only the thread keeps the loop.
                _ = RunLoop.current
                guard statusOfChild(letGoOfLoop) == 0 else { return false }
                alarm(20)
                let fired = Flag()
                Timer.scheduledTimer(withTimeInterval: .milliseconds(1), repeats: false) { _ in fired.set() }
                return RunLoop.current.run(in: .default) == .finished && fired.isSet
            }
            precondition(isGood, "the child has failed, or the parent's loop does not go on")
        }
    }

    @Test("a child may release a descriptor that is still watched, and the parent still receives its events")
    func watchedInChild() async {
        await #expect(processExitsWith: .success) {
            let isGood = onThread {
                let pipe = DescriptorPair()
                defer { withExtendedLifetime(pipe) {} }
                let served = Counter()
                let source = DescriptorSource(fileDescriptor: pipe.reader, events: .readable) { source, _ in
                    served.add()
                    source.invalidate()
                }
                try! RunLoop.current.add(source, forMode: .default)
                guard statusOfChild(letGoOfLoop) == 0 else { return false }
                alarm(20)
                pipe.write()
                return RunLoop.current.run(in: .default) == .finished && served.value == 1
            }
            precondition(isGood, "the child has failed, or the parent's loop does not go on")
        }
    }
}

/// Releases the thread's loop, as the end of the thread does.
private func letGoOfLoop() {
    let loop = Weak(RunLoop.install(nil))
    precondition(loop.isGone, "something else keeps the loop")
}

/// Calls `body` in a child process, and then ends this one as the child has ended.
private func endAsChildDoes(_ body: () -> Void) {
    if statusOfChild(body) != 0 { exit(EXIT_FAILURE) }
}
