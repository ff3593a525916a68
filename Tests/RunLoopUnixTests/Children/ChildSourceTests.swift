import Glibc
import RunLoopCore
import RunLoopKit
import RunLoopSimulation
import RunLoopUnix
import TestSupport
import Testing

/// Events of a loop for the end of a child.
@Suite("Child sources", .timeLimit(.minutes(15)))
struct ChildSourceTests {
    @Test("a status distinguishes a code from a signal", arguments: [0, 1, 7, 255])
    func codes(code: Int32) throws {
        #expect(try end(of: shell("exit \(code)")) == .exited(code))
    }

    @Test("a status has the signal that has ended the child")
    func signals() throws {
        let ended = try end(of: shell("kill -TERM $$"))
        #expect(ended == .signalled(.terminate, coreDumped: false))
        #expect(try end(of: shell("ulimit -c 0; kill -SEGV $$")).description.hasPrefix("ended by SIGSEGV"))
    }

    @Test("a status is described in words, and is a success only with the code 0")
    func words() {
        typealias Status = ChildProcess.ExitStatus
        #expect(Status.signalled(.quit, coreDumped: true).description == "ended by SIGQUIT, core dumped")
        #expect(Status.exited(3).description == "exited with code 3")
        #expect(Status.exited(0).isSuccess && !Status.exited(3).isSuccess && !Status.lost.isSuccess)
    }

    @Test("the child is reaped after the handler: within it the number is still the child's")
    func reaped() throws {
        let child = try shell("exit 3")
        var wasZombie = false
        let loop = RunLoop.current
        let source = ChildSource(child) { child, status in
            wasZombie = isZombie(child.processIdentifier) && child.status == status
        }
        try loop.add(source, forMode: .default)
        #expect(child.status == nil)
        #expect(loop.run(in: .default, until: loop.now + .seconds(30)) == .finished)
        #expect(wasZombie && !isChild(child.processIdentifier))
        #expect(child.status == .exited(3) && !source.isValid)
    }

    @Test("the end of a child waits for its mode, and costs nothing meanwhile")
    func modes() throws {
        let child = try shell("exit 0")
        var isCalled = false
        let loop = RunLoop.current
        try loop.add(ChildSource(child) { _, _ in isCalled = true }, forMode: .default)
        let other = CustomSource()
        loop.add(other, forMode: "panel")
        defer { other.invalidate() }
        #expect(eventually { isZombie(child.processIdentifier) })
        let before = loop.statistics
        for _ in 1...3 { loop.run(in: "panel", until: .distantPast) }
        #expect(!isCalled && loop.statistics.parks - before.parks == 1)
        loop.run(in: .default, until: .distantPast)
        #expect(isCalled)
    }

    @Test("a source that is added after the end, or after the reaping, is called in the next pass")
    func late() throws {
        let child = try shell("exit 5")
        #expect(eventually { isZombie(child.processIdentifier) })
        var statuses: [ChildProcess.ExitStatus] = []
        let loop = RunLoop.current
        for _ in 1...2 {
            try loop.add(ChildSource(child) { statuses.append($1) }, forMode: .default)
            loop.run(in: .default, until: .distantPast)
        }
        #expect(statuses == [.exited(5), .exited(5)])
    }

    @Test("several sources for one child are each called")
    func several() throws {
        let child = try shell("exit 0")
        var calls = 0
        let loop = RunLoop.current
        for _ in 1...3 { try loop.add(ChildSource(child) { _, _ in calls += 1 }, forMode: .default) }
        #expect(loop.run(in: .default, until: loop.now + .seconds(30)) == .finished)
        #expect(calls == 3)
    }

    @Test("an invalidated or removed source is not called, and the child continues")
    func invalidated() throws {
        let child = try ChildProcess.spawn(.named("sleep"), arguments: ["1000"])
        let loop = RunLoop.current
        let source = ChildSource(child) { _, _ in Issue.record("it was called") }
        try loop.add(source, forMode: .default)
        loop.remove(source, forMode: .default)
        #expect(loop.run(in: .default, until: .distantPast) == .finished)
        try loop.add(source, forMode: .default)
        source.invalidate()
        try loop.add(source, forMode: .default)
        #expect(loop.run(in: .default, until: .distantPast) == .finished)
        #expect(isChild(child.processIdentifier) && !isZombie(child.processIdentifier))
        try child.kill(.kill)
        #expect(try end(of: child) == .signalled(.kill, coreDumped: false))
    }

    @Test("a handler may run the loop, and its source is not called again")
    func nested() throws {
        let child = try shell("exit 0")
        var calls = 0
        let loop = RunLoop.current
        let source = ChildSource(child) { child, _ in
            calls += 1
            for _ in 1...3 { loop.run(in: .default, until: .distantPast) }
            #expect(isZombie(child.processIdentifier))
        }
        try loop.add(source, forMode: .default)
        #expect(loop.run(in: .default, until: loop.now + .seconds(30)) == .finished)
        #expect(calls == 1)
    }

    @Test("a source, its handler and its child are freed after the call, and with their loop")
    func memory() {
        final class Witness {
            let released: Counter
            init(_ released: Counter) { self.released = released }
            deinit { released.add() }
        }
        let released = Counter()
        onThread {
            let loop = RunLoop.current
            for endsByItself in [true, false] {
                let witness = Witness(released)
                weak var weakChild: ChildProcess?
                do {
                    let child = try! ChildProcess.spawn(.named("sleep"), arguments: [endsByItself ? "0" : "1000"])
                    weakChild = child
                    let source = ChildSource(child) { _, _ in withExtendedLifetime(witness) {} }
                    try! loop.add(source, forMode: .default)
                    if !endsByItself { try! child.kill(.kill) }
                }
                guard endsByItself else { continue }
                loop.run(in: .default, until: loop.now + .seconds(30))
                precondition(weakChild == nil)
            }
        }
        #expect(released.value == 2)
    }

    @Test("a loop in a simulation is notified of a child's end, and its time does not move for it")
    func simulation() throws {
        let child = try shell("exit 4")
        #expect(eventually { isZombie(child.processIdentifier) })
        try withSimulation { simulation in
            let start = simulation.now
            var status: ChildProcess.ExitStatus?
            try simulation.loop.add(ChildSource(child) { status = $1 }, forMode: .default)
            simulation.advance(by: .zero)
            #expect(status == .exited(4) && simulation.now == start)
        }
    }

    @Test("fifty children that end at once are each reported once")
    func many() throws {
        var codes: [Int32] = []
        let loop = RunLoop.current
        for code in 0..<50 {
            let child = try shell("exit \(code)")
            let source = ChildSource(child) { _, status in
                if case .exited(let code) = status { codes.append(code) }
            }
            try loop.add(source, forMode: .default)
        }
        #expect(loop.run(in: .default, until: loop.now + .seconds(60)) == .finished)
        #expect(codes.sorted() == Array(0..<50))
    }
}
