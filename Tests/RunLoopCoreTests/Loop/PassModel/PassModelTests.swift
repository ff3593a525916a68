import Glibc
import RunLoopCore
import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

/// Flights of random programs, read with the table from which the model of the pass is made. SEEDS=… runs more of them.
@Suite("Flights beside the model of the pass", .timeLimit(.minutes(15)))
struct PassModelTests {
    private static let seeds = UInt64(getenv("SEEDS").flatMap { Int(String(cString: $0)) } ?? 1)

    /// Returns the flight of a random program on virtual time, and the facts about its handlers.
    private func fly(
        _ seed: UInt64, isObserved: Bool = true
    ) throws -> (story: FlightStory, program: PassMachine.Program) {
        var story: FlightStory?
        var program = PassMachine.Program(isObserved: isObserved, isVirtual: true, isWhole: true)
        try withSimulation { simulation in
            let recorder = try FlightRecorder(simulation.loop)
            let random = RandomProgram(simulation.loop, seed: seed, isObserved: isObserved) { simulation.spend($0) }
            for _ in 0..<5 { simulation.loop.run(in: .default, until: simulation.now + .milliseconds(8)) }
            random.drain()
            story = FlightStory(try recorder.memory.flight())
            program.know = random.know
        }
        return (story!, program)
    }

    @Test("flights on virtual time are accepted")
    func accepted() throws {
        for seed in 1...Self.seeds * 10 {
            // Without observers, the beginning of a pass is unknown.
            let (story, program) = try fly(seed, isObserved: seed % 4 != 0)
            var machine = PassMachine(PassTable(), program)
            #expect(throws: Never.self, "seed \(seed)") { try machine.read(story) }
        }
    }

    @Test("damaged flights are refused", arguments: FlightDamage.allCases)
    func damaged(damage: FlightDamage) throws {
        var required = 0
        for seed in 1...2 + Self.seeds / 2 {
            let (story, program) = try fly(seed)
            var random = SeededGenerator(seed: seed)
            let places = story.entries.indices.shuffled(using: &random)
            let changes = places.lazy.compactMap { place in damage.apply(to: story, at: place).map { (place, $0) } }
            for (place, (changed, mustBeRefused)) in changes.prefix(50) {
                var machine = PassMachine(PassTable(), program)
                let isRefused = (try? machine.read(changed)) == nil
                #expect(isRefused || !mustBeRefused, "seed \(seed), entry \(place): \(story.entries[place])")
                required += mustBeRefused ? 1 : 0
            }
        }
        #expect(required > 0)
    }

    @Test("each row of the table is needed: without it flights are refused")
    func rows() throws {
        let table = PassTable()
        var used: Set<Int> = []
        var flights: [(story: FlightStory, program: PassMachine.Program)] = []
        for seed in 1...10 as ClosedRange<UInt64> { flights.append(try fly(seed)) }
        for flight in flights {
            var machine = PassMachine(table, flight.program)
            try machine.read(flight.story)
            used.formUnion(machine.used)
        }
        let silent: Set = ["-", "mail", "turn", "looks", "clock", "begins", "descriptor"]
        let idle = table.rows.indices.filter { !silent.contains(table.rows[$0].event) && !used.contains($0) }
        #expect(idle.isEmpty)
        for row in table.rows where row.event != "descriptor" {
            var damaged = table
            damaged.rows.removeAll { $0 == row }
            let isRefused = flights.contains { flight in
                var machine = PassMachine(damaged, flight.program)
                return (try? machine.read(flight.story)) == nil
            }
            #expect(isRefused, "\(row)")
        }
    }

    @Test("flights on the real clock, with posts of other threads and a descriptor, are accepted")
    func realClock() {
        for seed in 1...Self.seeds {
            let refusal = onThread { Self.flyOnRealClock(seed) }
            #expect(refusal == nil, "seed \(seed)")
        }
    }

    /// - Returns: the reason why the flight was refused.
    private static func flyOnRealClock(_ seed: UInt64) -> String? {
        let loop = RunLoop.current
        let recorder = try! FlightRecorder(loop)
        let pair = DescriptorPair()
        let random = RandomProgram(loop, seed: seed) { work in
            let end = loop.now + work
            while loop.now < end {}
        }
        random.add(pair)
        let (remote, writer, ended, names) = (loop.remote, pair.writer, Counter(), ["poster 1", "poster 2"])
        let threads = names.enumerated().map { index, name in
            LoopThread(name: name) { thread in
                thread.perform {
                    var random = SeededGenerator(seed: seed << 1 + UInt64(index))
                    for _ in 0..<30 {
                        RandomProgram.post(to: remote, Int.random(in: 1...3, using: &random))
                        if index == 0, Bool.random(using: &random) { write(writer, "x", 1) }
                        usleep(UInt32.random(in: 0...400, using: &random))
                    }
                    ended.add()
                }
            }
        }
        while ended.value < names.count { loop.run(in: .default, until: loop.now + .milliseconds(3)) }
        for thread in threads {
            thread.stop()
            thread.join()
        }
        random.drain()
        let program = PassMachine.Program(
            isObserved: true, isWhole: true, posters: Set(names), know: { random.know($0) })
        var machine = PassMachine(PassTable(), program)
        do {
            try machine.read(FlightStory(try recorder.memory.flight()))
            return nil
        } catch {
            return "\(error)"
        }
    }
}
