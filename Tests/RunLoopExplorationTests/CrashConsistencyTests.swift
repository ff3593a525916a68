import RunLoopExploration
import RunLoopHosts
import RunLoopKit
import RunLoopSimulation
import RunLoopUnix
import TestSupport
import Testing

/// Synchronous code that keeps a number in files and saves it within one handler.
private struct Saving: Sendable, CustomTestStringConvertible {
    let testDescription: String
    /// Saves a number.
    let save: @Sendable (Disk, UInt8) throws -> Void
    /// Saves a number, without the bug.
    let mended: @Sendable (Disk, UInt8) throws -> Void
    /// Returns the saved number; throws if the files make no sense.
    let load: @Sendable (SimulatedDisk) throws -> UInt8

    private static func record(_ number: UInt8) -> [UInt8] { [UInt8](repeating: number, count: 4) }

    private static func number(of record: [UInt8]?) throws -> UInt8 {
        guard let record, record.count == 4, Set(record).count == 1 else {
            throw Broken(description: "the record is \(record.map { "\($0)" } ?? "lost")")
        }
        return record[0]
    }

    /// Replaces a file safely, or without its first sync.
    private static func replace(
        _ path: String, by bytes: [UInt8], on disk: Disk, syncs: Bool = true
    ) throws {
        if disk.exists(path + ".new") { try disk.remove(path + ".new") }
        let file = try disk.open(path + ".new", .readingAndWritingNew)
        try file.write(bytes, at: 0)
        if syncs { try file.sync() }
        try disk.rename(path + ".new", to: path)
        try disk.syncDirectory(of: path)
    }

    static let all = [
        Saving(
            testDescription: "truncate, then write",
            save: { disk, number in
                let file = try disk.open("/data/a", .writing)
                try file.truncate(to: 0)
                try file.write(record(number), at: 0)
                try file.sync()
            },
            mended: { disk, number in try replace("/data/a", by: record(number), on: disk) },
            load: { try number(of: $0.contents(of: "/data/a")) }),
        Saving(
            testDescription: "header before body",
            save: { disk, number in
                let (file, offset) = (try disk.open("/data/a", .writing), Int(number) * 5 - 1)
                try file.write([4], at: offset)
                try file.write(record(number), at: offset + 1)
                try file.sync()
            },
            mended: { disk, number in
                let (file, offset) = (try disk.open("/data/a", .writing), Int(number) * 5 - 1)
                try file.write(record(number), at: offset + 1)
                try file.sync()
                try file.write([4], at: offset)
                try file.sync()
            },
            load: { disk in
                var (rest, last) = (disk.contents(of: "/data/a")![4...], 0 as UInt8)
                while rest.popFirst() == 4 {
                    last = try number(of: Array(rest.prefix(4)))
                    rest = rest.dropFirst(4)
                }
                return last
            }),
        Saving(
            testDescription: "two files that must agree",
            save: { disk, number in
                for path in ["/data/a", "/data/b"] { try replace(path, by: record(number), on: disk) }
            },
            mended: { disk, number in try replace("/data/a", by: record(number) + record(number), on: disk) },
            load: { disk in
                let bytes = disk.contents(of: "/data/a")!
                let one = try number(of: Array(bytes.prefix(4)))
                let other = try number(of: bytes.count == 8 ? Array(bytes[4...]) : disk.contents(of: "/data/b"))
                guard one == other else { throw Broken(description: "one file has \(one), the other \(other)") }
                return one
            }),
        Saving(
            testDescription: "rename without sync",
            save: { disk, number in try replace("/data/a", by: record(number), on: disk, syncs: false) },
            mended: { disk, number in try replace("/data/a", by: record(number), on: disk) },
            load: { try number(of: $0.contents(of: "/data/a")) }),
    ]

    /// Saves four numbers, one a second, on a host that may crash.
    func run(_ simulation: Simulation, isMended: Bool) throws {
        let saved = Counter()
        let host = SimulatedNetwork(simulation).addHost("store") { loop in
            let timer = Timer(timeInterval: .seconds(1), repeats: true) { timer in
                let number = UInt8(saved.value + 1)
                do { try (isMended ? mended : save)(Disk.current, number) } catch { fatalError("\(error)") }
                saved.add()
                if number == 4 { timer.invalidate() }
            }
            loop.add(timer, forMode: .default)
        }
        for path in ["/data/a", "/data/b"] { host.disk.install([0, 0, 0, 0], at: path) }
        simulation.mayHappen("the store crashes") { host.crash() }
        simulation.advance(by: .seconds(6))
        let found = try load(host.disk)
        guard found >= saved.value else {
            throw Broken(description: "\(found) is there, and \(saved.value) were saved")
        }
    }
}

@Suite("Crashes within synchronous code that writes files")
struct CrashConsistencyTests {
    @Test("a crash between two calls of one handler is found within 100 schedules", arguments: Saving.all)
    private func found(_ saving: Saving) throws {
        for seed in seeds(usually: 2) {
            let exploration = Exploration(schedules: 100, seed: seed)
            guard case .failed(let finding) = exploration.run({ try saving.run($0, isMended: false) }) else {
                Issue.record("not found with seed \(seed)")
                continue
            }
            #expect(finding.isReproducible && finding.fault.kind == .expectation, "\(finding)")
            let crashes = finding.token.departures.filter { $0.place.contains("the store crashes") }
            #expect(crashes.count == 1, "seed \(seed): \(finding)")
            #expect(exploration.replay(finding.token) { try saving.run($0, isMended: false) } == finding.fault)
        }
    }

    // The last one has the same twin as the first one.
    @Test("code without the bug passes all schedules", arguments: Saving.all.dropLast())
    private func mended(_ saving: Saving) {
        let schedules = amount(of: "SCHEDULES", usually: 500)
        let result = Exploration(schedules: schedules).run { try saving.run($0, isMended: true) }
        guard case .passed(schedules) = result else { return #expect(Bool(false), "\(result)") }
    }
}
