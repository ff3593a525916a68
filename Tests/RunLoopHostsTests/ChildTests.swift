import Glibc
@_spi(Ports) import RunLoopCore
import RunLoopHosts
import RunLoopKit
import RunLoopSimulation
import RunLoopUnix
import TestSupport
import Testing

/// Scripts for a shell, each with the simulated host's substitute for it.
private let scripts: [String: SimulatedProcess.Program] = [
    "exit 3": { $0.exit(3) },
    "echo out; echo err >&2": { process in
        process.print("out")
        try process.standardError.write(Array("err\n".utf8))
    },
    "cat": { process in
        let copy = Connection(reading: process.standardInput, writing: process.standardOutput, on: process.loop) {
            $0.write($1)
            return $1.count
        }
        copy.endHandler = { $0.finishWriting() }
        try copy.start()
    },
    "echo $A $B $1 $0; pwd": { process in
        let (environment, arguments) = (process.environment, process.arguments)
        process.print(
            [environment["A"] ?? "", environment["B"] ?? "", arguments[3], arguments[2]].filter { !$0.isEmpty }
                .joined(separator: " "))
        process.print(process.workingDirectory)
    },
    "exec sleep 1000": { $0.loop.perform(afterDelay: .seconds(1_000)) {} },
    "trap '' TERM; echo ready; while :; do sleep 0.01; done": { process in
        let source = try SignalSource(signal: .terminate) { _ in }
        try process.loop.add(source, forMode: .common)
        process.print("ready")
    },
    "trap 'exit 4' TERM; echo ready; while :; do sleep 0.01; done": { process in
        let source = try SignalSource(signal: .terminate) { _ in process.exit(4) }
        try process.loop.add(source, forMode: .common)
        process.print("ready")
    },
    // The grandchild holds the pipe, and is in the child's group.
    "sleep 1000 & echo ready; exit 5": { process in
        _ = try ChildProcess.spawn(.path("/bin/sh"), arguments: ["-c", "exec sleep 1000"])
        process.print("ready")
        process.exit(5)
    },
    "while :; do echo y; done": { process in
        while true { process.print(String(repeating: "y", count: 9_999)) }
    },
    "exec head -c 200000 /dev/zero": { process in
        for _ in 0..<20 { process.print(String(repeating: "0", count: 9_999)) }
    },
]

/// The places where children live.
enum ChildGround: CaseIterable, CustomTestStringConvertible {
    case system
    case simulation

    var testDescription: String { "\(self)" }

    /// Calls a block on a loop that runs until it is empty, and returns the block's log.
    func run(_ body: @escaping @Sendable (RunLoop, Log) throws -> Void) throws -> [String] {
        let log = Log()
        switch self {
        case .system:
            try LoopThread.run { loop in try body(loop, log) }
        case .simulation:
            let ending = withSimulation { simulation -> SimulatedHost.Ending? in
                let network = SimulatedNetwork(simulation)
                let host = network.addHost("parent") { loop in try body(loop, log) }
                host.install(program: "/bin/sh") { process in try scripts[process.arguments[1]]!(process) }
                simulation.advance(by: .seconds(100))
                #expect(host.processes.allSatisfy { !$0.isZombie }, "\(host.processes)")
                return host.ending
            }
            guard case .returned? = ending else { throw SystemError("run the parent: \(ending as Any)", errno: ECHILD) }
        }
        return log.lines.withLock(\.self)
    }

    final class Log: Sendable {
        let lines = Locked<[String]>([])

        func callAsFunction(_ line: String) {
            lines.withLock { $0.append(line) }
        }
    }
}

extension LoopThread {
    /// Runs a loop on a thread until nothing is left in it.
    fileprivate static func run(_ body: @escaping @Sendable (RunLoop) throws -> Void) throws {
        let failure = Locked<(any Error)?>(nil)
        let thread = LoopThread(name: "parent") { loop in
            do { try body(loop) } catch { failure.withLock { $0 = error } }
        }
        thread.join()
        if let error = failure.withLock(\.self) { throw error }
    }
}

extension ChildProcess {
    fileprivate static func shell(
        _ script: String, _ arguments: [String] = [], environment: Environment = .inherit, directory: String? = nil,
        input: Stream = .null, output: Stream = .null, error: Stream = .null, group: Group = .inherit
    ) throws(SystemError) -> ChildProcess {
        try spawn(
            .path("/bin/sh"), arguments: ["-c", script] + arguments, environment: environment,
            workingDirectory: directory, standardInput: input, standardOutput: output, standardError: error,
            group: group)
    }
}

extension RunLoop {
    /// Logs the end of a child, and its status.
    fileprivate func await(_ child: ChildProcess, _ log: ChildGround.Log) throws {
        try add(ChildSource(child) { log("\($1)") }, forMode: .default)
    }

    /// Logs the lines from a pipe.
    @discardableResult
    fileprivate func read(
        _ end: PipeEnd?, _ log: ChildGround.Log, _ name: String = "", then next: @escaping (String) -> Void = { _ in }
    ) throws -> Connection {
        let connection = Connection(
            reading: end, writing: nil, on: self,
            receive: Framing.lines { _, line in
                let text = line.withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) }
                log(name + text)
                next(text)
            })
        try connection.start()
        return connection
    }
}

@Suite("Children of simulated hosts behave like real ones", .timeLimit(.minutes(2)))
struct ChildTests {
    @Test("a child's ending is reported, and its process number is released", arguments: ChildGround.allCases)
    func ends(ground: ChildGround) throws {
        let lines = try ground.run { loop, log in
            let child = try ChildProcess.shell("exit 3")
            try loop.add(
                ChildSource(child) { child, status in
                    log("\(status) \((try? child.kill(.terminate)) == true)")
                    loop.perform { log("\(try! child.kill())") }
                }, forMode: .default)
        }
        #expect(lines == ["exited with code 3 true", "false"])
    }

    @Test("a child's output arrives, with the end of its streams", arguments: ChildGround.allCases)
    func output(ground: ChildGround) throws {
        let lines = try ground.run { loop, log in
            let child = try ChildProcess.shell("echo out; echo err >&2", output: .pipe, error: .pipe)
            try loop.read(child.standardOutput, log, "1 ").closeHandler = { log("end \($1)") }
            try loop.read(child.standardError, log, "2 ")
            try loop.await(child, log)
        }
        #expect(lines.sorted() == ["1 out", "2 err", "end ended", "exited with code 0"])
    }

    @Test("a child reads everything that is written to it, until the end", arguments: ChildGround.allCases)
    func input(ground: ChildGround) throws {
        let lines = try ground.run { loop, log in
            let child = try ChildProcess.shell("cat", input: .pipe, output: .pipe)
            var count = 0
            let cat = Connection(reading: child.standardOutput, writing: child.standardInput, on: loop) {
                count += $1.count
                return $1.count
            }
            cat.closeHandler = { log("\($1) of \(count)") }
            try cat.start()
            // More than the pipes take.
            for _ in 0..<100 { cat.write(String(repeating: "x", count: 2_000)) }
            cat.finishWriting()
            try loop.await(child, log)
        }
        #expect(lines.sorted() == ["ended of 200000", "exited with code 0"])
    }

    @Test("a child has its arguments, its environment and its directory", arguments: ChildGround.allCases)
    func context(ground: ChildGround) throws {
        let lines = try ground.run { loop, log in
            let child = try ChildProcess.shell(
                "echo $A $B $1 $0; pwd", ["zero", "one two"], environment: .only(["A": "a=1", "B": "b"]),
                directory: "/", output: .pipe)
            try loop.read(child.standardOutput, log)
            try loop.await(child, log)
        }
        #expect(lines == ["a=1 b one two zero", "/", "exited with code 0"])
    }

    @Test(
        "a signal ends a child, or is handled, or is ignored until the child is killed", arguments: ChildGround.allCases
    )
    func signals(ground: ChildGround) throws {
        let lines = try ground.run { loop, log in
            let sleeping = try ChildProcess.shell("exec sleep 1000")
            try loop.await(sleeping, log)
            try sleeping.kill()
            let careful = try ChildProcess.shell(
                "trap 'exit 4' TERM; echo ready; while :; do sleep 0.01; done", output: .pipe)
            try loop.read(careful.standardOutput, log) { _ in _ = try? careful.kill() }
            try loop.await(careful, log)
            let stubborn = try ChildProcess.shell(
                "trap '' TERM; echo ready; while :; do sleep 0.01; done", output: .pipe, group: .newGroup)
            try loop.read(stubborn.standardOutput, log) { _ in
                try? stubborn.stop(within: .milliseconds(50), on: loop)
            }
            try loop.await(stubborn, log)
        }
        #expect(
            lines.sorted() == ["ended by SIGKILL", "ended by SIGTERM", "exited with code 4", "ready", "ready"])
    }

    @Test("stopping a child in its own group also stops processes that it started", arguments: ChildGround.allCases)
    func groups(ground: ChildGround) throws {
        let lines = try ground.run { loop, log in
            let child = try ChildProcess.shell(
                "sleep 1000 & echo ready; exit 5", output: .pipe, group: .newGroup)
            let reading = try loop.read(child.standardOutput, log)
            // The pipe ends when no process holds it any more.
            reading.closeHandler = { _, _ in log("end") }
            try loop.add(
                ChildSource(child) { child, status in
                    log("\(status) \(reading.isOpen)")
                    _ = try? child.kill(.kill)
                }, forMode: .default)
        }
        #expect(lines == ["ready", "exited with code 5 true", "end"])
    }

    @Test("a program that writes to a pipe without a reader ends by SIGPIPE", arguments: ChildGround.allCases)
    func nobodyReads(ground: ChildGround) throws {
        let lines = try ground.run { loop, log in
            let child = try ChildProcess.shell("while :; do echo y; done", output: .pipe)
            var source: DescriptorSource?
            source = DescriptorSource(fileDescriptor: child.standardOutput!.fileDescriptor, events: .readable) { _, _ in
                source?.invalidate()
                child.standardOutput!.close()
            }
            try loop.add(source!, forMode: .default)
            try loop.await(child, log)
        }
        #expect(lines == ["ended by SIGPIPE"])
    }

    @Test("all of a child's output can be read when its end is reported", arguments: ChildGround.allCases)
    func lastWords(ground: ChildGround) throws {
        let lines = try ground.run { loop, log in
            let child = try ChildProcess.shell("exec head -c 200000 /dev/zero", output: .pipe)
            var count = 0
            let reading = Connection(reading: child.standardOutput, writing: nil, on: loop) {
                count += $1.count
                return $1.count
            }
            try reading.start()
            try loop.add(ChildSource(child) { log("\($1) \(count)") }, forMode: .default)
        }
        #expect(lines == ["exited with code 0 200000"])
    }

    @Test("a child that cannot be started is refused", arguments: ChildGround.allCases)
    func refused(ground: ChildGround) throws {
        let lines = try ground.run { _, log in
            let attempts: [() throws -> ChildProcess] = [
                { try .spawn(.path("/bin/no such program")) },
                { try .spawn(.named("no-such-program")) },
                { try .spawn(.path("/bin/sh"), arguments: ["a\0b"]) },
                { try .spawn(.path("/bin/sh"), arguments: ["-c", "exit 3"], standardOutput: .descriptor(1 << 20)) },
            ]
            for attempt in attempts {
                do {
                    _ = try attempt()
                    log("started")
                } catch { log("\((error as! SystemError).errno == ENOENT) \((error as! SystemError).errno)") }
            }
        }
        #expect(lines == ["true \(ENOENT)", "true \(ENOENT)", "false \(EINVAL)", "false \(EBADF)"])
    }

    @Test("a child whose end is not awaited leaves no zombie", arguments: ChildGround.allCases)
    func abandoned(ground: ChildGround) throws {
        _ = try ground.run { loop, log in
            _ = try ChildProcess.shell("exit 3")
            loop.perform(afterDelay: .milliseconds(100)) {}
        }
    }

    @Test("a task awaits its child", arguments: ChildGround.allCases)
    func tasks(ground: ChildGround) throws {
        let lines = try ground.run { loop, log in
            loop.task {
                for code in 1...3 {
                    let child = try ChildProcess.shell(code == 2 ? "exec sleep 1000" : "exit 3")
                    if code == 2 { try child.kill(.interrupt) }
                    log("\(try await child.exit())")
                }
            }
        }
        #expect(lines == ["exited with code 3", "ended by SIGINT", "exited with code 3"])
    }
}

@Suite("Processes of simulated hosts")
struct ProcessTests {
    @Test("a crash ends the children with their parent; they are not there when the host starts again")
    func crash() {
        withSimulation { simulation in
            let network = SimulatedNetwork(simulation)
            let ticks = Locked(0)
            let host = network.addHost("parent") { loop in
                _ = try ChildProcess.spawn(.path("/bin/tick"))
                loop.perform(afterDelay: .seconds(1_000)) {}
            }
            host.install(program: "/bin/tick") { process in
                process.loop.add(
                    Timer(timeInterval: .seconds(1), repeats: true) { _ in ticks.withLock { $0 += 1 } },
                    forMode: .default)
            }
            simulation.advance(by: .milliseconds(3_500))
            #expect(host.processes.map(\.command) == [[], ["/bin/tick"]] && ticks.withLock(\.self) == 3)
            host.crash()
            simulation.advance(by: .seconds(100))
            #expect(host.processes.isEmpty && ticks.withLock(\.self) == 3)
            host.start()
            simulation.advance(by: .milliseconds(1_500))
            #expect(host.processes.count == 2 && ticks.withLock(\.self) == 4)
        }
    }

    @Test("children continue after their parent has ended, except the children of a service", arguments: [false, true])
    func orphans(isService: Bool) {
        withSimulation { simulation in
            let network = SimulatedNetwork(simulation)
            let host = network.addHost("parent", service: isService ? .init() : nil) { loop in
                _ = try ChildProcess.spawn(.path("/bin/sleep"))
            }
            host.install(program: "/bin/sleep") { $0.loop.perform(afterDelay: .seconds(10)) {} }
            simulation.advance(by: .seconds(1))
            #expect(!host.isRunning && host.processes.count == (isService ? 0 : 1))
            simulation.advance(by: .seconds(10))
            #expect(host.processes.isEmpty)
        }
    }

    @Test("when a simulation has ended, nothing is left of its hosts")
    func gone() {
        weak var disk: SimulatedDisk?
        withSimulation { simulation in
            let network = SimulatedNetwork(simulation)
            let host = network.addHost("parent") { loop in
                let children = try (0..<2).map { _ in try ChildProcess.spawn(.path("/bin/sleep")) }
                loop.perform(afterDelay: .seconds(100)) { withExtendedLifetime(children) {} }
            }
            host.install(program: "/bin/sleep") { process in
                process.loop.perform(afterDelay: .seconds(Int(process.processIdentifier) * 10)) {}
            }
            disk = host.disk
            // One child is a zombie by then, and one still runs.
            simulation.advance(by: .seconds(35))
            #expect(host.processes.map(\.isZombie) == [false, true, false])
        }
        // The host's threads are about to end.
        #expect(eventually { disk == nil })
    }

    @Test("a host has no more processes than its limit")
    func limit() {
        withSimulation { simulation in
            let network = SimulatedNetwork(simulation)
            let log = Locked<[Int32]>([])
            let host = network.addHost("parent") { loop in
                loop.perform(afterDelay: .seconds(1)) {
                    for _ in 0..<3 {
                        do throws(SystemError) {
                            _ = try ChildProcess.spawn(.path("/bin/sleep"))
                            log.withLock { $0.append(0) }
                        } catch { log.withLock { $0.append(error.errno) } }
                    }
                }
            }
            host.install(program: "/bin/sleep") { $0.loop.perform(afterDelay: .seconds(10)) {} }
            host.processLimit = 3
            simulation.advance(by: .seconds(5))
            #expect(log.withLock(\.self) == [0, 0, EAGAIN])
        }
    }

    @Test("a child uses its host's clock, is notified when that clock is set, and has random numbers of its own")
    func worlds() {
        withSimulation { simulation in
            let network = SimulatedNetwork(simulation)
            let log = Locked<[String]>([])
            let host = network.addHost("parent") { loop in
                for _ in 0..<2 { _ = try ChildProcess.spawn(.path("/bin/clock")) }
                loop.perform(afterDelay: .seconds(50)) {}
            }
            host.install(program: "/bin/clock") { process in
                let random = process.loop.randomNumbers
                let start = process.loop.wallTime
                let number = random.next()
                process.loop.add(
                    WallTimer(at: start + .seconds(100)) { _ in
                        log.withLock { $0.append("\(number) \(process.loop.now)") }
                    }, forMode: .default)
            }
            simulation.advance(by: .seconds(1))
            host.wallTime = host.wallTime + .seconds(90)
            simulation.advance(by: .seconds(60))
            let lines = log.withLock(\.self)
            #expect(lines.count == 2 && Set(lines).count == 2 && lines.allSatisfy { $0.hasSuffix(" 10.000000000") })
        }
    }

    @Test("a thousand children, one after another, leave nothing behind")
    func many() {
        withSimulation { simulation in
            let network = SimulatedNetwork(simulation)
            let codes = Locked(0)
            let host = network.addHost("parent") { loop in
                loop.task {
                    for number in 0..<1_000 {
                        let child = try ChildProcess.spawn(.path("/bin/work"), arguments: ["\(number)"])
                        let status = try await child.exit()
                        if status == .exited(Int32(number % 200)) { codes.withLock { $0 += 1 } }
                    }
                }
            }
            host.install(program: "/bin/work") { process in
                let code = Int32(process.arguments[0])! % 200
                process.loop.perform(afterDelay: .seconds(60)) { process.exit(code) }
            }
            simulation.advance(by: .seconds(100_000))
            #expect(codes.withLock(\.self) == 1_000 && host.processes.isEmpty && !host.isRunning)
        }
    }
}
