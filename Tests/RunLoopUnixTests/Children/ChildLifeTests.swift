import Glibc
import RunLoopCore
import RunLoopKit
import TestSupport
import Testing

@_spi(Ports) @testable import RunLoopUnix

/// Signals to children, children without a waiter, and systems without process descriptors.
@Suite("Life of a child", .timeLimit(.minutes(15)))
struct ChildLifeTests {
    @Test("a signal reaches the child until it is reaped, and no process after that")
    func kill() throws {
        let child = try ChildProcess.spawn(.named("sleep"), arguments: ["1000"])
        #expect(throws: SystemError.self) { try child.kill(Signal(rawValue: 1000)) }
        #expect(try child.kill())
        #expect(try end(of: child) == .signalled(.terminate, coreDumped: false))
        #expect(try !child.kill() && !child.kill(.kill))
    }

    @Test("a child that ignores SIGTERM is ended by SIGKILL, as staged with timers")
    func staged() throws {
        // The child reports when it is ready.
        let child = try shell("trap '' TERM; echo ready; while :; do sleep 0.01; done")
        #expect(eventually { (try? child.standardOutput!.read()) != .nothing })
        var status: ChildProcess.ExitStatus?
        let loop = RunLoop.current
        try loop.add(ChildSource(child) { status = $1 }, forMode: .default)
        loop.perform(afterDelay: .milliseconds(1)) { try! child.kill(.terminate) }
        loop.perform(afterDelay: .milliseconds(50)) { try! child.kill(.kill) }
        #expect(loop.run(in: .default, until: loop.now + .seconds(30)) == .finished)
        #expect(status == .signalled(.kill, coreDumped: false))
    }

    @Test("a child that was dropped is not disturbed, and is reaped when it ends")
    func droppedWhileItRuns() throws {
        let input: PipeEnd
        let pid: Int32
        do {
            let child = try ChildProcess.spawn(.named("cat"), standardInput: .pipe)
            (input, pid) = (child.standardInput!, child.processIdentifier)
        }
        #expect(isChild(pid) && !isZombie(pid))
        input.close()
        #expect(eventually { !isChild(pid) })
    }

    @Test("a child that was dropped after its end is reaped at once")
    func droppedAfterItsEnd() throws {
        let pid: Int32
        do {
            let child = try shell("exit 0")
            pid = child.processIdentifier
            #expect(eventually { isZombie(pid) })
        }
        #expect(!isChild(pid))
    }

    @Test("a child whose loop ends is reaped when it ends")
    func endOfLoop() {
        let pid = onThread {
            let child = try! ChildProcess.spawn(.named("sleep"), arguments: ["1000"])
            try! RunLoop.current.add(ChildSource(child) { _, _ in }, forMode: .default)
            return child.processIdentifier
        }
        #expect(isChild(pid))
        #expect(Glibc.kill(pid, SIGKILL) == 0)
        #expect(eventually { !isChild(pid) })
    }

    @Test("a child whose status was taken by other code is lost, and its number is left alone")
    func lost() async {
        await #expect(processExitsWith: .success) {
            onThread {
                try! Signal.ignore(.child)
                let child = try! shell("exit 0")
                precondition(try! end(of: child) == .lost)
                precondition(try! !child.kill(.kill) && child.status == .lost)
            }
        }
    }

    @Test("without process descriptors SIGCHLD says that a child has ended, in modes, and the disposition comes back")
    func withoutDescriptor() async {
        await #expect(processExitsWith: .success) {
            onThread {
                let loop = RunLoop.current
                let running = try! ChildProcess.spawn(withoutDescriptor: .named("sleep"), arguments: ["1000"])
                let ended = try! ChildProcess.spawn(withoutDescriptor: .named("false"))
                precondition(eventually { isZombie(ended.processIdentifier) })
                var log: [String] = []
                let sources = [(running, "running"), (ended, "ended")].map { child, name in
                    ChildSource(child) { child, status in
                        precondition(isZombie(child.processIdentifier))
                        log.append("\(name) \(status)")
                    }
                }
                for source in sources { try! loop.add(source, forMode: .default) }
                loop.add(CustomSource(), forMode: "panel")
                loop.run(in: "panel", until: .distantPast)
                precondition(log.isEmpty)
                loop.run(in: .default, until: .distantPast)
                precondition(log == ["ended exited with code 1"], "\(log)")
                precondition(disposition(of: .child) > 1)
                precondition(try! running.kill(.kill))
                precondition(loop.run(in: .default, until: loop.now + .seconds(30)) == .finished)
                precondition(log.last == "running ended by SIGKILL", "\(log)")
                precondition(!isChild(running.processIdentifier) && !isChild(ended.processIdentifier))
                precondition(disposition(of: .child) == 0 && (try! !running.kill()))
            }
        }
    }

    @Test("without process descriptors too, a child that was dropped is reaped when it ends")
    func droppedWithoutDescriptor() throws {
        let pid: Int32
        do {
            let child = try ChildProcess.spawn(withoutDescriptor: .named("sleep"), arguments: ["1000"])
            pid = child.processIdentifier
            #expect(isChild(pid))
        }
        #expect(Glibc.kill(pid, SIGKILL) == 0)
        #expect(eventually { !isChild(pid) })
    }
}

extension ChildProcess {
    /// Starts a program as if the system had no process descriptors.
    fileprivate static func spawn(
        withoutDescriptor executable: Executable, arguments: [String] = []
    ) throws(SystemError) -> ChildProcess {
        let request = SpawnRequest(
            system: WorldSystem.current, executable: executable, arguments: arguments,
            streams: [.inherit, .null, .inherit])
        return try ChildProcess(request, usesDescriptor: false)
    }
}
