import FoundationEssentials
import Glibc
import RunLoopCore
import RunLoopKit
import RunLoopSimulation
import Testing

@Suite("Dumps")
struct DumpTests {
    private func makePipe() throws -> (reading: Int32, writing: Int32) {
        var ends: [Int32] = [0, 0]
        try #require(pipe(&ends) == 0)
        return (ends[0], ends[1])
    }

    @Test("everything that is scheduled is there, with its kind, name, place, modes and date")
    func items() throws {
        try withSimulation { simulation in
            let loop = simulation.loop
            let line: UInt32 = #line
            let timer = Timer.scheduledTimer(withTimeInterval: .seconds(2), repeats: true) { _ in }
            timer.name = "poll"
            let source = TimerSource(queue: .current, name: "pulse")
            source.schedule(after: .seconds(1), repeating: .seconds(1))
            source.activate()
            let link = DisplayLink { _ in }
            link.add(to: loop, forMode: .tracking)
            let custom = CustomSource()
            loop.add(custom, forMode: .common)
            let ends = try makePipe()
            let descriptor = DescriptorSource(fileDescriptor: ends.reading, events: .readable) { _, _ in }
            try loop.add(descriptor, forMode: ["default", "panel"])
            loop.add(Observer(activities: .all) { _, _ in }, forMode: .common)
            loop.perform(inModes: "panel") {}
            loop.remote.perform { _ in }
            loop.perform(afterDelay: .seconds(3)) {}
            loop.run(in: .tracking, until: loop.now)

            let items = loop.dump().items
            func item(_ kind: RunLoop.ItemKind) -> RunLoop.Dump.Item? { items.first { $0.kind == kind } }
            let kinds: [RunLoop.ItemKind] = [
                .displayLink, .timerSource, .timer, .timer, .source, .descriptor, .observer, .block, .block,
            ]
            #expect(items.map(\.kind) == kinds)
            #expect(item(.timer)?.name == "poll")
            #expect(item(.timer)?.origin == RunLoop.Origin(line: line + 1))
            #expect(item(.timer)?.deadline == ms(2000))
            #expect(item(.timer)?.detail == "every 2.0 seconds")
            #expect(item(.timerSource)?.isEverywhere == true)
            #expect(item(.timerSource)?.origin.line == line + 3)
            #expect(item(.displayLink)?.modes == [.tracking])
            #expect(item(.displayLink)?.origin.line == line + 6)
            #expect(item(.source)?.isCommon == true)
            #expect(item(.source)?.modes == [.default])
            #expect(item(.source)?.origin.line == line + 8)
            #expect(item(.descriptor)?.modes.map(\.name) == ["default", "panel"])
            #expect(item(.descriptor)?.detail == "descriptor \(ends.reading), readable")
            #expect(item(.descriptor)?.origin.line == line + 11)
            #expect(item(.observer)?.keepsAlive == false)
            #expect(item(.observer)?.origin.line == line + 13)
            #expect(items.filter { $0.kind == .block }.map(\.origin.line) == [line + 14, line + 15])
            #expect(items.filter { $0.kind == .timer }.last?.origin.line == line + 16, "a delayed call is a timer")
            #expect(items.allSatisfy { $0.origin.file == "RunLoopCoreTests/DumpTests.swift" })
            descriptor.invalidate()
            close(ends.reading)
            close(ends.writing)
            withExtendedLifetime(source) {}
        }
    }

    @Test("a dump tells what keeps each mode alive, what is due next in it, and what runs")
    func modes() {
        withSimulation { simulation in
            let loop = simulation.loop
            let timer = Timer.scheduledTimer(withTimeInterval: .seconds(2), repeats: true) { _ in }
            let keepAlive = CustomSource()
            loop.add(keepAlive, forMode: .tracking)
            var dump: RunLoop.Dump?
            loop.perform {
                loop.perform(inModes: .tracking) { dump = loop.dump() }
                loop.run(in: .tracking, until: loop.now)
            }
            loop.run(in: .default, until: loop.now)
            #expect(dump?.runs == [.default, .tracking])
            #expect(dump?.commonModes == [.default])
            #expect(dump?.keepingAlive(.default).map(\.origin) == [timer.origin])
            #expect(dump?.keepingAlive(.tracking).map(\.origin) == [keepAlive.origin])
            #expect(dump?.nextDeadline(in: .default) == ms(2000))
            #expect(dump?.nextDeadline(in: .tracking) == nil)
            let text = "\(dump!)"
            #expect(text.contains("running in default, and within it in tracking\n"))
            #expect(text.contains("\nmode default (common): 1 to wait for, next due 2.000000000\n"))
            #expect(text.contains("\nmode tracking: 1 to wait for\n"))
        }
    }

    @Test("the JSON is JSON, whatever the names are, and says the same")
    func json() throws {
        struct Decoded: Decodable {
            struct Item: Decodable {
                let kind: String
                let name: String?
                let origin: String
                let modes: [String]
                let due: Double?
            }
            struct Statistics: Decodable {
                struct Lateness: Decodable { let count: Int }
                let fires: Int
                let lateness: Lateness
            }
            struct Mode: Decodable {
                let name: String
                let next: Double?
                let keepingAlive: Int
            }
            let loop: String?
            let virtual: Bool
            let items: [Item]
            let modes: [Mode]
            let statistics: Statistics
        }
        let name = "a \"quoted\" \\ name\nwith\tlines \u{1} and ü"
        try withSimulation { simulation in
            let loop = simulation.loop
            let timer = Timer.scheduledTimer(withTimeInterval: .milliseconds(1500), repeats: true) { _ in }
            timer.name = name
            loop.add(CustomSource(), forMode: RunLoop.Modes(RunLoop.Mode(name)))
            simulation.advance(by: .seconds(2))
            let dump = loop.dump()
            let decoded = try JSONDecoder().decode(Decoded.self, from: Data(dump.json.utf8))
            #expect(!dump.json.contains("\n"))
            #expect(decoded.loop == nil && decoded.virtual)
            #expect(decoded.items.map(\.kind) == ["timer", "source"])
            #expect(decoded.items[0].name == name)
            #expect(decoded.items[0].due == 3)
            #expect(decoded.items[0].origin == "\(timer.origin)")
            #expect(decoded.items[1].modes == [name])
            #expect(decoded.modes.map(\.name).contains(name))
            #expect(decoded.modes[0].next == 3 && decoded.modes[0].keepingAlive == 1)
            #expect(decoded.statistics.fires == 1)
            #expect(decoded.statistics.lateness.count == 1)
        }
    }

    @Test("whoever makes timers for others passes on their place")
    func passedOn() {
        func every(_ interval: Duration, file: StaticString = #fileID, line: UInt32 = #line) -> Timer {
            Timer(timeInterval: interval, repeats: true, block: { _ in }, file: file, line: line)
        }
        withSimulation { _ in
            let timer = every(.seconds(1))
            #expect("\(timer.origin)" == "RunLoopCoreTests/DumpTests.swift:\(#line - 1)")
        }
    }

    @Test("a parked timer has no date; a parked descriptor says that it is ready")
    func parked() throws {
        try withSimulation { simulation in
            let loop = simulation.loop
            loop.add(Timer(fire: .distantFuture, interval: .zero, repeats: false) { _ in }, forMode: .default)
            let ends = try makePipe()
            try loop.add(
                DescriptorSource(fileDescriptor: ends.reading, events: .readable) { _, _ in }, forMode: .tracking)
            _ = write(ends.writing, "x", 1)
            loop.run(in: .default, until: loop.now)
            let dump = loop.dump()
            close(ends.reading)
            close(ends.writing)
            #expect(dump.items.map(\.deadline) == [nil, nil])
            #expect(dump.items.last?.detail == "descriptor \(ends.reading), readable, ready and parked")
        }
    }
}
