import Glibc
import RunLoopHosts
import RunLoopSimulation
import RunLoopUnix
import Testing

/// Programs of the system with files that others use as well.
@Suite("A program of the system with files", .timeLimit(.minutes(2)))
struct SharedFileProgramTests {
    private static let python = "/usr/bin/python3"

    private static func lines(of host: String, _ simulation: Simulation) -> [String] {
        simulation.trace.compactMap { line in
            line.split(separator: "\(host) - wrote ", maxSplits: 1).dropFirst().first.map(String.init)
        }
    }

    private func lines(_ script: String) -> [String] {
        withSimulation(seed: 1, traced: true) { simulation in
            SimulatedNetwork(simulation).addProgram("host", at: Self.python, arguments: ["-u", "-c", script])
            simulation.advance(by: .seconds(60))
            #expect(simulation.escapes == [])
            return Self.lines(of: "host", simulation)
        }
    }

    @Test("locks parts of files, for open files and for its process, and waits for such locks")
    func partLocks() {
        let script = """
            import fcntl, os, struct, threading, time
            def lock(file, operation, kind, start, length):
                answer = fcntl.fcntl(file, operation, struct.pack("hhqqi4x", kind, 0, start, length, 0))
                return struct.unpack("hhqqi4x", answer)
            GET, SET, WAIT = 36, 37, 38
            READ, WRITE, FREE = fcntl.F_RDLCK, fcntl.F_WRLCK, fcntl.F_UNLCK
            one, other = open("/file", "w+"), open("/file", "r+")
            lock(one, SET, WRITE, 10, 10)
            print(lock(other, GET, READ, 0, 0))
            print(lock(other, GET, READ, 20, 0)[0] == FREE)
            try: lock(other, SET, READ, 15, 1)
            except OSError as error: print(error.errno)
            lock(one, SET, FREE, 12, 2)
            lock(other, SET, WRITE, 12, 2)
            def release():
                time.sleep(3)
                one.close()
            threading.Thread(target=release).start()
            begin = time.monotonic()
            lock(other, WAIT, WRITE, 0, 0)
            print(time.monotonic() - begin)
            other.close()
            again = open("/file", "r+")
            fcntl.lockf(again, fcntl.LOCK_EX | fcntl.LOCK_NB)
            print(lock(open("/file"), fcntl.F_GETLK, READ, 0, 0)[0] == FREE)
            print(lock(open("/file"), GET, READ, 0, 0)[0] == FREE)
            """
        #expect(lines(script) == ["(1, 0, 10, 10, -1)", "True", "11", "3.0", "True", "True"])
    }

    @Test("maps files that it writes, of which a crash keeps what is synced")
    func mappings() {
        let script = """
            import mmap, os, time
            file = open("/file", "r+b")
            memory = mmap.mmap(file.fileno(), 0)
            print(bytes(memory[:6]), bytes(memory[4096:4102]))
            memory[0:6] = b"mapped"
            print(file.read(6))
            os.pwrite(file.fileno(), b"file", 4096)
            print(bytes(memory[4096:4102]))
            memory.flush()
            memory[4096:4102] = b"is not"
            print(os.pread(file.fileno(), 6, 4096))
            time.sleep(1000)
            """
        withSimulation(seed: 1, traced: true) { simulation in
            let network = SimulatedNetwork(simulation)
            let program = network.addProgram("host", at: Self.python, arguments: ["-u", "-c", script])
            program.disk.install([UInt8](repeating: UInt8(ascii: "-"), count: 5_000), at: "/file")
            simulation.advance(by: .seconds(1))
            let expected = ["b'------' b'------'", "b'mapped'", "b'file--'", "b'is not'"]
            #expect(Self.lines(of: "host", simulation) == expected)
            #expect(program.disk.contents(of: "/file")?.dropFirst(4_096).starts(with: "is not".utf8) == true)
            program.crash()
            #expect(program.disk.contents(of: "/file")?.starts(with: "mapped".utf8) == true)
            #expect(simulation.escapes == [])
        }
    }

    @Test("has a working directory, and a standard input from the disk")
    func directory() {
        let script = """
            import os, sys
            os.makedirs("/a/b"); os.chdir("/a/b"); open("file", "w").write("x")
            os.chown("file", 3, 4)
            print(os.getcwd(), os.path.exists("/a/b/file"), os.stat("file").st_uid, os.stat("file").st_gid)
            os.chdir(".."); print(os.getcwd(), os.listdir())
            try: os.chdir("c")
            except OSError as error: print(error.errno)
            print(sys.stdin.read().split())
            """
        withSimulation(seed: 1, traced: true) { simulation in
            let network = SimulatedNetwork(simulation)
            let host = network.addProgram("host", at: Self.python, arguments: ["-u", "-c", script])
            host.disk.install(Array("one two\nthree".utf8), at: "/dev/stdin")
            simulation.advance(by: .seconds(1))
            let expected = ["/a/b True 3 4", "/a ['b']", "2", "['one', 'two', 'three']"]
            #expect(Self.lines(of: "host", simulation) == expected)
            #expect(simulation.escapes == [])
        }
    }

    @Test("keeps with SQLite what it has committed, in each crash", arguments: 1...10)
    func database(seed: UInt64) throws {
        let script = """
            import os, sqlite3, time
            os.makedirs("/data", exist_ok=True)
            root = os.open("/", os.O_RDONLY); os.fsync(root)
            data = sqlite3.connect("/data/db", isolation_level=None)
            data.execute("pragma journal_mode=wal"); data.execute("pragma synchronous=full")
            data.execute("create table if not exists t (id integer primary key, text)")
            other = sqlite3.connect("/data/db", isolation_level=None)
            count = data.execute("select count(*) from t").fetchone()[0]
            print("found", count, data.execute("pragma integrity_check").fetchone()[0])
            while True:
                data.execute("begin immediate")
                for _ in range(5):
                    count += 1
                    data.execute("insert into t values (?, ?)", (count, "x" * (count % 1000)))
                data.execute("commit")
                print("committed", count)
                assert other.execute("select count(*) from t").fetchone()[0] == count
                time.sleep(0.3)
            """
        withSimulation(seed: seed, traced: true) { simulation in
            let network = SimulatedNetwork(simulation)
            let host = network.addProgram("host", at: Self.python, arguments: ["-u", "-c", script])
            for step in 1...5 {
                // A commit takes time, and some crashes come within one.
                host.disk.slow(.sync, by: .milliseconds(100))
                simulation.advance(by: .seconds(2) + .milliseconds(Int(seed) * step * 37))
                host.crash()
                host.start()
            }
            simulation.advance(by: .seconds(1))
            var committed = 0
            for words in Self.lines(of: "host", simulation).map({ $0.split(separator: " ") }) {
                let count = Int(words[1])!
                if words[0] == "found" {
                    // A commit may have been complete before its program said so.
                    #expect(committed...committed + 5 ~= count && words[2] == "ok", "\(words) after \(committed)")
                }
                committed = count
            }
            #expect(committed > 60 && simulation.escapes == [], "\(committed) \(simulation.escapes)")
        }
    }

    @Test(
        "keeps with redis-server what it has answered, for an hour with cuts and crashes, and the same each time",
        .enabled(if: access("/usr/bin/redis-server", X_OK) == 0 && access("/usr/bin/redis-cli", X_OK) == 0))
    func redis() {
        let traces = (0..<2).map { _ in
            withSimulation(seed: 7, traced: true) { simulation in
                let network = SimulatedNetwork(simulation)
                network.link.latency = .milliseconds(1)
                let server = network.addProgram(
                    "server", at: "/usr/bin/redis-server",
                    arguments: [
                        "--save", "", "--appendonly", "yes", "--appendfsync", "always", "--dir", "/data",
                        "--protected-mode", "no",
                    ], mayFail: true)
                // redis-server makes this directory, but syncs no name of it: a crash may lose it with everything in it.
                server.disk.installDirectory(at: "/data/appendonlydir")
                simulation.advance(by: .seconds(1))
                for part in 1...6 {
                    let client = network.addProgram(
                        "client \(part)", at: "/usr/bin/redis-cli",
                        arguments: ["-h", "server", "-r", "20", "-i", "10", "incr", "count"], mayFail: true)
                    simulation.advance(by: .seconds(55))
                    network.cut(between: client, and: server)
                    simulation.advance(by: .seconds(30))
                    network.heal()
                    simulation.advance(by: .seconds(400))
                    let answers = Self.lines(of: "client \(part)", simulation)
                    #expect(answers == (1...20).map { "\(20 * (part - 1) + $0)" }, "\(part): \(answers)")
                    server.crash()
                    simulation.advance(by: .seconds(5))
                    server.start()
                    simulation.advance(by: .seconds(110))
                }
                #expect(simulation.escapes == [] && server.isRunning, "\(simulation.escapes)")
                return simulation.trace
            }
        }
        #expect(traces[0] == traces[1])
    }
}
