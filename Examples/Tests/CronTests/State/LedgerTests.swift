import ExampleTestSupport
import Glibc
import Logging
import RunLoopHosts
import RunLoopKit
import RunLoopSimulation
import RunLoopUnix
import Testing

@testable import Cron

@Suite("The ledger", .timeLimit(.minutes(5)))
struct LedgerTests {
    private static func mark(_ number: Int) -> Ledger.Mark {
        Ledger.Mark(dates: "every 1s", date: RunLoop.WallTime(secondsSince1970: Int64(number)))
    }

    /// Runs a program with a ledger on a host, which has a thread for its disk.
    private func onHost(
        seed: UInt64 = 1, _ program: @escaping @Sendable (Ledger, RunLoop) throws -> Void,
        _ test: (SimulatedHost, Simulation) -> Void
    ) {
        withSimulation(seed: seed) { simulation in
            let network = SimulatedNetwork(simulation)
            let host = network.addHost("cron", addresses: ["10.1.0.1"]) { loop in
                let disk = LoopThread(name: "disk")
                let log = Logger(label: "cron", factory: { _ in SwiftLogNoOpLogHandler() })
                let ledger = try Ledger("/state/marks", on: loop, disk: disk.remote, log)
                try ledger.load()
                try program(ledger, loop)
            }
            test(host, simulation)
        }
    }

    @Test("marks that save() has waited for survive a crash, and surviving marks were noted", arguments: 0..<10)
    func crashes(seed: UInt64) {
        let (found, saved, noted) = (Log<Int>(), Log<Int>(), Log<Int>())
        onHost(seed: seed) { ledger, loop in
            let first = Int(ledger["a"]?.date.secondsSince1970 ?? 0)
            found.append(first)
            // Several tasks note and save at the same time.
            for task in 1...3 {
                loop.task {
                    for number in 1... {
                        let next = (noted.entries.last ?? 0) + 1
                        noted.append(next)
                        ledger.note(Self.mark(next), of: "a")
                        ledger.note(Self.mark(number), of: "b\(task)")
                        try await ledger.save()
                        saved.append(next)
                        try await loop.clock.sleep(for: .milliseconds(7 * task))
                    }
                }
            }
        } _: { host, simulation in
            var random = simulation.loop.randomNumbers
            for operation in SimulatedDisk.Operation.allCases { host.disk.slow(operation, by: .milliseconds(1)) }
            for _ in 0..<20 {
                simulation.advance(by: .microseconds(Int.random(in: 0...200_000, using: &random)))
                host.crash()
                let promised = saved.entries.max() ?? 0
                host.start()
                simulation.advance(by: .milliseconds(10))
                let there = found.entries.last!
                #expect(there >= promised && there <= noted.entries.last!, "seed \(seed)")
            }
            #expect(saved.entries.count > 100, "seed \(seed)")
        }
    }

    @Test(
        "an unwritable file is reported and tried again after a pause, without which virtual time would stand still"
    )
    func fullDisk() {
        let (states, saved) = (Log<String?>(), Log<String>())
        onHost { ledger, loop in
            loop.add(
                Timer(timeInterval: .milliseconds(500), repeats: true) { _ in states.append(ledger.problem) },
                forMode: .common)
            for name in ["a", "b"] {
                loop.task {
                    try await loop.clock.sleep(for: .seconds(10))
                    ledger.note(Self.mark(1), of: name)
                    try await ledger.save()
                    saved(name)
                }
            }
        } _: { host, simulation in
            simulation.advance(by: .seconds(5))
            host.disk.capacity = 0
            simulation.advance(by: .seconds(100))
            #expect(saved.entries.isEmpty)
            #expect(states.entries.last == "write /state/marks.new: No space left on device (errno 28)")
            host.disk.capacity = nil
            simulation.advance(by: .seconds(2))
            #expect(saved.entries.count == 2)
            #expect(states.entries.last == .some(nil))
        }
    }

    @Test("a cancelled save ends, and the noted mark is saved with the next one")
    func cancelled() {
        let log = Log<String>()
        onHost { ledger, loop in
            let task = loop.task {
                ledger.note(Self.mark(1), of: "a")
                try await ledger.save()
            } then: {
                log("\($0)")
            }
            loop.perform(afterDelay: .seconds(5), inModes: .common) { task.cancel() }
            loop.perform(afterDelay: .seconds(20), inModes: .common) { ledger.saveSoon() }
        } _: { host, simulation in
            host.disk.capacity = 0
            simulation.advance(by: .seconds(10))
            #expect(log.text == "failure(Swift.CancellationError())")
            host.disk.capacity = nil
            simulation.advance(by: .seconds(20))
            #expect(host.disk.contents(of: "/state/marks") == Array("Cron 1\na\t1000000000\tevery 1s\n".utf8))
        }
    }

    @Test("a file that is not as it was written is refused, with its line")
    func damaged() throws {
        let directory = TemporaryDirectory()
        let path = directory["marks"]
        let marks = ["a": Self.mark(1), "b": Ledger.Mark(dates: "30 2 * * * in GMT", date: .init(nanoseconds: -1))]
        #expect(try MarkFile.read(path).isEmpty)
        try MarkFile.write(marks, to: path)
        #expect(try MarkFile.read(path) == marks)
        // Left by a crash.
        directory.write("half", to: "marks.new")
        try MarkFile.write([:], to: path)
        #expect(try MarkFile.read(path).isEmpty)
        for (text, reason) in [
            ("", " is not a whole file of this version"), ("Cron 2\n", " is not a whole file of this version"),
            ("Cron 1\na\t1\tx\nb\t2", " is not a whole file of this version"),
            ("Cron 1\na\t1\tx\nb\tx\ty\n", ":3: this is not a name, a number and dates"),
        ] {
            directory.write(text, to: "marks")
            do {
                _ = try MarkFile.read(path)
                Issue.record("\(text) was read")
            } catch {
                #expect(error.description == path + reason)
            }
        }
    }
}
