import RunLoopHosts
import RunLoopKit
import RunLoopSimulation
import RunLoopUnix
import Testing

/// Programs of the system, none of which was written for a simulation.
@Suite("A program of the system on a simulated host", .timeLimit(.minutes(2)))
struct ProgramTests {
    static let python = "/usr/bin/python3"

    /// The lines that a program has written or caused, without times, and the end of its process.
    struct Run: Equatable {
        var lines: [String]
        var escapes: [String]
        var ending: String
    }

    /// Runs a script of Python for a simulated hour.
    func run(_ script: String, seed: UInt64 = 1, mayFail: Bool = false) -> Run {
        withSimulation(seed: seed, traced: true) { simulation in
            let network = SimulatedNetwork(simulation)
            let host = network.addProgram(
                "host", at: Self.python, arguments: ["-u", "-c", script], mayFail: mayFail)
            simulation.advance(by: .seconds(3_600))
            return Run(
                lines: Self.output(of: "host", simulation), escapes: simulation.escapes,
                ending: host.ending.map { "\($0)" } ?? "runs")
        }
    }

    static func output(of host: String, _ simulation: Simulation) -> [String] {
        simulation.trace.compactMap { line in
            line.split(separator: "\(host) - wrote ", maxSplits: 1).dropFirst().first.map(String.init)
        }
    }

    @Test("sleeps in virtual time, and ends with its status")
    func sleeps() {
        let run = run(
            """
            import time, sys
            begin, wall = time.monotonic(), time.time()
            time.sleep(100)
            print(time.monotonic() - begin, time.time() - wall)
            sys.exit(3)
            """, mayFail: true)
        #expect(run == Run(lines: ["100.0 100.0"], escapes: [], ending: "exited(3)"))
    }

    @Test("has threads, locks, conditions and time limits of waits")
    func threads() {
        let run = run(
            """
            import threading, time, queue
            lock, work, late = threading.Lock(), queue.Queue(), threading.Event()
            def serve(name):
                while (item := work.get()) is not None:
                    time.sleep(item)
                    with lock: print(name, item)
            threads = [threading.Thread(target=serve, args=(name,)) for name in "abc"]
            for thread in threads: thread.start()
            for item in 3, 2, 4, 7: work.put(item)
            for thread in threads: work.put(None)
            for thread in threads: thread.join()
            begin = time.monotonic()
            print(late.wait(timeout=10), time.monotonic() - begin)
            """)
        #expect(run.lines == ["b 2", "a 3", "c 4", "b 7", "False 10.0"] && run.escapes == [], "\(run)")
    }

    @Test("has chance and addresses that follow from the seed")
    func chance() {
        let script = "import random, os; print(random.random(), hash('a'), id(os), os.urandom(4), os.getpid())"
        #expect(run(script).lines == run(script).lines)
        #expect(run(script, seed: 2).lines != run(script).lines)
    }

    @Test("talks to others by name, with the latency of their link")
    func asyncio() {
        let server = """
            import asyncio
            async def serve(reader, writer):
                while line := await reader.readline():
                    writer.write(line.upper())
                    await writer.drain()
                writer.close()
            async def main():
                server = await asyncio.start_server(serve, "0.0.0.0", 80)
                async with server: await server.serve_forever()
            asyncio.run(main())
            """
        let client = """
            import asyncio, time
            async def main():
                await asyncio.sleep(1)
                reader, writer = await asyncio.open_connection("server", 80)
                for word in "one", "two":
                    begin = time.monotonic()
                    writer.write(word.encode() + bytes([10]))
                    print((await reader.readline()).decode().strip(), round(time.monotonic() - begin, 3))
                    await asyncio.sleep(60)
                writer.close()
            asyncio.run(main())
            """
        let traces = (0..<2).map { _ in
            withSimulation(seed: 1, traced: true) { simulation in
                let network = SimulatedNetwork(simulation)
                network.link.latency = .milliseconds(5)
                let host = network.addProgram("server", at: Self.python, arguments: ["-u", "-c", server])
                network.addProgram("client", at: Self.python, arguments: ["-u", "-c", client])
                simulation.advance(by: .seconds(3_600))
                #expect(Self.output(of: "client", simulation) == ["ONE 0.01", "TWO 0.01"])
                #expect(simulation.escapes == [] && host.isRunning)
                return simulation.trace
            }
        }
        #expect(traces[0] == traces[1])
    }

    @Test("talks to a Swift program on another host, in blocking calls")
    func blockingCalls() {
        let client = """
            import socket
            s = socket.create_connection(("server", 7))
            s.sendall(b"x" * 1000)
            s.shutdown(socket.SHUT_WR)
            count = 0
            while more := s.recv(100000): count += len(more)
            print(count, s.getpeername()[1])
            """
        withSimulation(seed: 1, traced: true) { simulation in
            let network = SimulatedNetwork(simulation)
            network.addHost("server", program: echo)
            network.addProgram("client", at: Self.python, arguments: ["-u", "-c", client])
            simulation.advance(by: .seconds(3_600))
            #expect(Self.output(of: "client", simulation) == ["1000 7"])
        }
    }

    @Test("loses with a crash of its host what it has not synced, and starts again on what is left")
    func crash() throws {
        let script = """
            import os, time
            if os.path.exists("/data/log"): print("found", open("/data/log").read(), sorted(os.listdir("/data")))
            os.makedirs("/data", exist_ok=True)
            log = open("/data/log", "w")
            log.write("kept"); log.flush(); os.fsync(log.fileno())
            for path in "/data", "/":
                directory = os.open(path, os.O_RDONLY); os.fsync(directory); os.close(directory)
            log.write(" and lost"); log.flush()
            print("wrote", os.path.getsize("/data/log"))
            time.sleep(100000)
            """
        try withSimulation(seed: 1, traced: true) { (simulation) throws in
            let network = SimulatedNetwork(simulation)
            let host = network.addProgram("host", at: Self.python, arguments: ["-u", "-c", script])
            simulation.advance(by: .seconds(10))
            host.crash()
            #expect(!host.isRunning)
            simulation.advance(by: .seconds(10))
            host.start()
            simulation.advance(by: .seconds(10))
            let lines = Self.output(of: "host", simulation)
            #expect(lines.count == 3 && lines.first == "wrote 13" && lines.last == "wrote 13", "\(lines)")
            #expect(lines.dropFirst().first?.hasPrefix("found kept") == true, "\(lines)")
            #expect(simulation.escapes == [])
        }
    }

    @Test("ends by a signal, and by a fault of its own")
    func signals() {
        withSimulation { simulation in
            let network = SimulatedNetwork(simulation)
            let host = network.addProgram("host", at: "/bin/sleep", arguments: ["1000"])
            let fault = network.addProgram(
                "fault", at: Self.python, arguments: ["-c", "import ctypes; ctypes.string_at(0)"], mayFail: true)
            simulation.advance(by: .seconds(1))
            host.send(.terminate)
            simulation.advance(by: .seconds(1))
            #expect(host.ending.map { "\($0)" } == "killed(SIGTERM)")
            #expect(fault.ending.map { "\($0)" } == "killed(SIGSEGV)")
        }
    }

    @Test("is told, and the simulation notes, if it asks for something that is not simulated")
    func escapes() {
        let ring = 425
        let run = run(
            "import ctypes; c = ctypes.CDLL(None, use_errno=True); print(c.syscall(\(ring), 0, 0), ctypes.get_errno())")
        #expect(run.lines == ["-1 38"])
        #expect(run.escapes.map { $0.hasPrefix("host makes the system call \(ring)") } == [true], "\(run)")
    }

    @Test("marks moments that a test must meet")
    func marks() {
        let script = "import ctypes; ctypes.CDLL(None).runloopkit_sometimes(b'a retry')"
        withSimulation { simulation in
            SimulatedNetwork(simulation).addProgram("host", at: Self.python, arguments: ["-c", script])
            simulation.advance(by: .seconds(1))
            #expect(simulation.marks["a retry"] == 1)
        }
    }

    @Test("that does not exist is a fault of the simulation")
    func missing() {
        let failure = #expect(throws: Simulation.HostError.self) {
            try withSimulation { (simulation) throws in
                let network = SimulatedNetwork(simulation)
                let host = network.addProgram("host", at: "/usr/bin/no-such-program")
                simulation.advance(by: .seconds(1))
                #expect(!host.isRunning)
            }
        }
        #expect("\(failure!)".contains("start /usr/bin/no-such-program: No such file or directory"), "\(failure!)")
    }
}
