import RunLoopHosts
import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@Suite("A program of the system on a simulated host", .timeLimit(.minutes(2)))
struct ProgramTests {
    private static let python = "/usr/bin/python3"

    /// Runs a script of Python for a simulated hour.
    ///
    /// - Returns: the lines that it has written, each with its time.
    private func run(_ script: String, seed: UInt64 = 1) -> (output: [String], host: SimulatedHost.Ending?) {
        var output: [String] = []
        var ending: SimulatedHost.Ending?
        withSimulation(seed: seed, traced: true) { simulation in
            let network = SimulatedNetwork(simulation)
            let host = network.addProgram("host", at: Self.python, arguments: ["-u", "-c", script], mayFail: true)
            simulation.advance(by: .seconds(3_600))
            output = simulation.trace
            ending = host.ending
        }
        return (output, ending)
    }

    @Test("sleeps in virtual time, and ends with its status")
    func sleeps() {
        let run = run(
            """
            import time, sys
            begin = time.monotonic()
            time.sleep(100)
            print(time.monotonic() - begin)
            sys.exit(3)
            """)
        print(run)
    }

    @Test("has threads, locks and conditions")
    func threads() {
        let run = run(
            """
            import threading, time, queue
            lines, lock, work = [], threading.Lock(), queue.Queue()
            def serve(name):
                while True:
                    item = work.get()
                    if item is None: return
                    time.sleep(item)
                    with lock: print(name, item, round(time.monotonic() % 1000, 3))
            all = [threading.Thread(target=serve, args=(n,)) for n in "abc"]
            for t in all: t.start()
            for i in range(9): work.put(i)
            for t in all: work.put(None)
            for t in all: t.join()
            print("joined")
            """)
        print(run)
    }
}
