import Glibc
import RunLoopCore
import RunLoopKit
import RunLoopUnix
import TestSupport
import Testing

/// The end of a child and its descendants. In all tests a grandchild holds the pipe, which ends when the grandchild has
/// exited.
@Suite("Ending children", .timeLimit(.minutes(15)))
struct ChildStopTests {
    /// Starts a shell with a group of its own, which starts a sleep and reports it.
    private func family(_ line: String, _ group: ChildProcess.Group = .newGroup) throws -> ChildProcess {
        let child = try ChildProcess.spawn(
            .path("/bin/sh"), arguments: ["-c", line], standardInput: .null, standardOutput: .pipe, group: group)
        var said = false
        let isReady = eventually {
            if case .bytes? = try? child.standardOutput!.read() { said = true }
            return said
        }
        precondition(isReady, "the child says nothing")
        return child
    }

    /// Returns `true` once every process that could write to a child's output has ended.
    private func ends(_ child: ChildProcess) -> Bool {
        eventually { (try? child.standardOutput!.read()) == .end }
    }

    @Test(
        "a signal reaches the processes a child has started, if the child has a group or a session of its own",
        arguments: [ChildProcess.Group.newGroup, .newSession])
    func group(group: ChildProcess.Group) throws {
        let child = try family("sleep 1000 & echo; wait", group)
        #expect(try child.kill())
        #expect(ends(child))
        #expect(try end(of: child) == .signalled(.terminate, coreDumped: false))
        #expect(try !child.kill())
    }

    @Test("a signal reaches only the child, if it has no group of its own")
    func noGroup() throws {
        let child = try family("sleep 1000 & echo $!; exec sleep 1000", .inherit)
        #expect(try child.kill(.kill))
        #expect(try end(of: child) == .signalled(.kill, coreDumped: false))
        #expect(try child.standardOutput!.read() == .nothing)
        // The orphan would outlive the test.
        #expect(orphans(of: child).map { Glibc.kill($0, SIGKILL) } == [0])
        #expect(ends(child))
    }

    /// Returns the processes that have the pipe of a child's output open.
    private func orphans(of child: ChildProcess) -> [Int32] {
        let pipe = linkTarget("/proc/self/fd/\(child.standardOutput!.fileDescriptor)")
        return directoryEntries("/proc").compactMap { Int32($0) }.filter { linkTarget("/proc/\($0)/fd/1") == pipe }
    }

    @Test("the rest of the group can still be reached in the handler of a source")
    func inHandler() throws {
        let child = try family("sleep 1000 & echo; exit 3")
        var wasReached = false
        let loop = RunLoop.current
        try loop.add(
            ChildSource(child) { child, _ in wasReached = (try? child.kill(.kill)) == true }, forMode: .default)
        #expect(loop.run(in: .default, until: loop.now + .seconds(60)) == .finished)
        #expect(wasReached && ends(child) && child.status == .exited(3))
    }

    @Test("a child that has left its group is reached by itself")
    func leftGroup() throws {
        // The group has no other member. In a session of its own the shell starts in a group that it cannot leave.
        let child = try ChildProcess.spawn(.named("sleep"), arguments: ["1000"], group: .newGroup)
        guard setpgid(child.processIdentifier, getpgrp()) == 0 else {
            // The system does not allow it after the exec, so a process cannot leave this way.
            #expect(errno == EACCES)
            try child.kill(.kill)
            return
        }
        #expect(try child.kill(.kill))
        #expect(try end(of: child) == .signalled(.kill, coreDumped: false))
    }

    @Test("a stop asks first, and kills child and group when the time is over")
    func escalation() throws {
        let child = try family("trap '' TERM; sleep 1000 & echo; while :; do sleep 0.01; done")
        let loop = RunLoop.current
        let begin = loop.now
        var status: ChildProcess.ExitStatus?
        try loop.add(ChildSource(child) { status = $1 }, forMode: .default)
        try child.stop(within: .milliseconds(30), on: loop, inModes: .default)
        #expect(loop.run(in: .default, until: loop.now + .seconds(60)) == .finished)
        #expect(status == .signalled(.kill, coreDumped: false) && ends(child))
        #expect(loop.now - begin >= .milliseconds(30))
    }

    @Test("a stop ends with the child, and kills the rest of its group at once")
    func stopInTime() throws {
        let child = try family("trap 'exit 7' TERM; (trap '' TERM; exec sleep 1000) & echo; wait")
        let loop = RunLoop.current
        var status: ChildProcess.ExitStatus?
        try loop.add(ChildSource(child) { status = $1 }, forMode: .default)
        try child.stop(within: .seconds(100_000), on: loop, inModes: .default)
        #expect(loop.run(in: .default, until: loop.now + .seconds(60)) == .finished)
        #expect(status == .exited(7) && ends(child))
        // Harmless now.
        try child.stop(within: .zero, on: loop)
        #expect(loop.run(in: .default) == .finished)
    }

    @Test("a stop with a shorter time hurries, and one with a longer time does not delay")
    func hurry() throws {
        let child = try family("trap '' TERM; echo; while :; do sleep 0.01; done")
        let loop = RunLoop.current
        try loop.add(ChildSource(child) { _, _ in }, forMode: .default)
        for grace in [Duration.seconds(100_000), .milliseconds(-1), Duration(attoseconds: .max)] {
            try child.stop(within: grace, on: loop, inModes: .default)
        }
        #expect(loop.run(in: .default, until: loop.now + .seconds(60)) == .finished)
        #expect(child.status == .signalled(.kill, coreDumped: false))
    }

    @Test("a stop without a source, or whose loop ends, kills all the same", arguments: [false, true])
    func withoutSource(loopEnds: Bool) throws {
        let output = onThread { () -> Int32 in
            let child = try! family("trap '' TERM; sleep 1000 & echo; while :; do sleep 0.01; done")
            let loop = RunLoop.current
            try! child.stop(within: loopEnds ? .seconds(100_000) : .milliseconds(1), on: loop, inModes: .default)
            if !loopEnds { precondition(loop.run(in: .default) == .finished) }
            return dup(child.standardOutput!.fileDescriptor)
        }
        defer { close(output) }
        var bytes = [UInt8](repeating: 0, count: 100)
        #expect(eventually { read(output, &bytes, 100) == 0 })
    }

    @Test("other threads may signal a child until it is reaped or given up")
    func remote() throws {
        let child = try family("sleep 1000 & echo; wait")
        let remote = child.remote
        #expect(onThread { (try? remote.kill()) == true })
        #expect(ends(child))
        #expect(try end(of: child) == .signalled(.terminate, coreDumped: false))
        #expect(onThread { (try? remote.kill()) == false })

        let input: PipeEnd
        let abandoned: ChildProcess.Remote
        do {
            let child = try ChildProcess.spawn(.named("cat"), standardInput: .pipe)
            (input, abandoned) = (child.standardInput!, child.remote)
        }
        #expect(try !abandoned.kill(.kill))
        input.close()
    }

    @Test("a remote that many threads use while the child is reaped signals no other process")
    func remoteRace() throws {
        for _ in 0..<20 {
            let child = try ChildProcess.spawn(.named("true"), group: .newGroup)
            let remote = child.remote
            let threads = (0..<3).map { _ in
                PlainThread { while (try? remote.kill(Signal(rawValue: SIGCONT))) == true {} }
            }
            _ = try end(of: child)
            for thread in threads { thread.join() }
        }
    }

    @Test("output written before the end is read before the end is reported, and can be read in any case")
    func order() throws {
        // A grandchild keeps the pipe open, so that its end proves nothing.
        let child = try ChildProcess.spawn(
            .path("/bin/sh"), arguments: ["-c", "sleep 1000 & head -c 60000 /dev/zero"], standardInput: .null,
            standardOutput: .pipe, group: .newGroup)
        #expect(eventually { isZombie(child.processIdentifier) })
        let loop = RunLoop.current
        let output = child.standardOutput!
        var log: [String] = []
        let ending = ChildSource(child) { child, _ in
            log.append("ended, \((try? output.read()) == .nothing)")
            _ = try? child.kill(.kill)
        }
        try loop.add(ending, forMode: .default)
        let reading = DescriptorSource(fileDescriptor: output.fileDescriptor, events: .readable) { source, _ in
            if case .bytes(let bytes)? = try? output.read() {
                log.append("read \(bytes.count)")
            } else {
                source.invalidate()
            }
        }
        // After the child source, before which it is served.
        try loop.add(reading, forMode: .default)
        #expect(loop.run(in: .default, until: loop.now + .seconds(60)) == .finished)
        #expect(log == ["read 60000", "ended, true"])
    }

    @Test("output written before the end can be read in the handler, regardless of which process holds the pipe")
    func lastOutput() throws {
        let child = try ChildProcess.spawn(
            .path("/bin/sh"), arguments: ["-c", "sleep 1000 & echo last words"], standardInput: .null,
            standardOutput: .pipe, group: .newGroup)
        var words: PipeEnd.Input?
        let loop = RunLoop.current
        let ending = ChildSource(child) { child, _ in
            words = try? child.standardOutput!.read()
            _ = try? child.kill(.kill)
        }
        try loop.add(ending, forMode: .default)
        #expect(loop.run(in: .default, until: loop.now + .seconds(60)) == .finished)
        #expect(words == .bytes(Array("last words\n".utf8)))
    }
}
