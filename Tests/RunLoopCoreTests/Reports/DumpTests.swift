import FoundationEssentials
import Glibc
@_spi(Ports) import RunLoopCore
import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@Suite("Dumps")
struct DumpTests {
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
            let pipe = DescriptorPair()
            let descriptor = DescriptorSource(fileDescriptor: pipe.reader, events: .readable) { _, _ in }
            try loop.add(descriptor, forMode: ["default", "panel"])
            loop.add(Observer(activities: .all) { _, _ in }, forMode: .common)
            loop.perform(inModes: "panel") {}
            loop.remote.perform { _ in }
            loop.perform(afterDelay: .seconds(3)) {}
            loop.run(in: .tracking, until: loop.now)

            let items = loop.dump().items
            func item(_ kind: RunLoop.ItemKind) -> RunLoop.Dump.Item? { items.first { $0.kind == kind } }
            let kinds: [RunLoop.ItemKind] = [
                .displayLink, .timerSource, .timer, .delayedCall, .source, .descriptor, .observer, .block, .block,
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
            #expect(item(.descriptor)?.detail == "descriptor \(pipe.reader), readable")
            #expect(item(.descriptor)?.origin.line == line + 11)
            #expect(item(.observer)?.keepsAlive == false)
            #expect(item(.observer)?.origin.line == line + 13)
            #expect(items.filter { $0.kind == .block }.map(\.origin.line) == [line + 14, line + 15])
            #expect(item(.delayedCall)?.origin.line == line + 16)
            #expect(items.allSatisfy { $0.origin.file == "RunLoopCoreTests/DumpTests.swift" })
            descriptor.invalidate()
            withExtendedLifetime(source) {}
        }
    }

    @Test("a dump shows the items that keep each mode alive, its next due date, and the running modes")
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
            simulation.advance(by: .seconds(1))
            simulation.spend(.microseconds(1_000_087))
            loop.run(in: .default, until: loop.now)
            let late = "late by 0.000087000 s (half), 0.000087000 s (99 %), 0.000087000 s (all)"
            #expect("\(loop.statistics)".hasSuffix(late), "\(loop.statistics)")
        }
    }

    @Test("the JSON is valid with any names, and says the same as the dump")
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
            #expect(!"\(dump.items[0])".contains("\n"), "an item is one line also as text")
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

    @Test("a function that makes timers for its callers passes on their place")
    func passedOn() {
        func every(_ interval: Duration, file: StaticString = #fileID, line: UInt32 = #line) -> Timer {
            Timer(timeInterval: interval, repeats: true, block: { _ in }, file: file, line: line)
        }
        withSimulation { _ in
            let timer = every(.seconds(1))
            #expect("\(timer.origin)" == "RunLoopCoreTests/DumpTests.swift:\(#line - 1)")
            #expect(RunLoop.Origin(line: 65_536).line == 65_535, "the last line that fits stands for those after it")
        }
    }

    @Test("a parked timer has no date; a parked descriptor says that it is ready")
    func parked() throws {
        try withSimulation { simulation in
            let loop = simulation.loop
            loop.add(Timer(fire: .distantFuture, interval: .zero, repeats: false) { _ in }, forMode: .default)
            let pipe = DescriptorPair()
            try loop.add(
                DescriptorSource(fileDescriptor: pipe.reader, events: .readable) { _, _ in }, forMode: .tracking)
            pipe.write()
            loop.run(in: .default, until: loop.now)
            let dump = loop.dump()
            #expect(dump.items.map(\.deadline) == [nil, nil])
            #expect(dump.items.last?.detail == "descriptor \(pipe.reader), readable, ready and parked")
        }
    }

    @Test("a dump can be made within every kind of handler, and shows the items still to come")
    func fromHandlers() throws {
        try withSimulation { simulation in
            let loop = simulation.loop
            let dumps = Locked<[String: String]>([:])
            @Sendable func dump(_ handler: String) {
                let items = RunLoop.current.dump().items
                    .map { "\($0.name ?? "\($0.kind)")\($0.deadline.map { " \($0.word)" } ?? "")" }
                dumps.withLock { $0[handler] = items.joined(separator: ", ") }
            }
            let repeating = loop.timer(1000, every: 1000) { _ in dump("timer") }
            repeating.name = "repeating"
            loop.timer(1000) { _ in dump("once") }.name = "once"
            let source = TimerSource(queue: .current, name: "pulse")
            source.schedule(after: .seconds(1), repeating: .seconds(1))
            source.setEventHandler { _ in dump("timer source") }
            source.activate()
            let link = DisplayLink { _ in dump("link") }
            link.name = "link"
            link.add(to: loop, forMode: .default)
            let custom = CustomSource { _ in dump("source") }
            loop.add(custom, forMode: .default)
            let pipe = DescriptorPair()
            defer { withExtendedLifetime(pipe) {} }
            pipe.write()
            let descriptor = DescriptorSource(fileDescriptor: pipe.reader, events: .readable) { source, _ in
                source.invalidate()
                dump("descriptor")
            }
            try loop.add(descriptor, forMode: .default)
            loop.add(Observer(activities: .all) { _, _ in dump("observer") }, forMode: .default)
            loop.perform { dump("block") }
            loop.perform {}
            custom.signal()
            simulation.advance(by: .seconds(1))
            withExtendedLifetime(source) {}

            // An item that is being called still has the date of the call, behind the dates that are waited for.
            let expected = [
                "block": "link 16, repeating 1000, once 1000, pulse 1000, source, descriptor, observer",
                "source": "link 16, repeating 1000, once 1000, pulse 1000, source, descriptor, observer",
                "descriptor": "link 16, repeating 1000, once 1000, pulse 1000, source, observer",
                "timer": "once 1000, pulse 1000, link 1000, repeating 1000, source, observer",
                "once": "pulse 1000, link 1000, repeating 2000, once 1000, source, observer",
                "timer source": "link 1000, repeating 2000, pulse 2000, source, observer",
                "link": "repeating 2000, pulse 2000, link 1000, source, observer",
                "observer": "link 1016, repeating 2000, pulse 2000, source, observer",
            ]
            #expect(dumps.withLock { $0 } == expected)
        }
    }

    @Test("a loop that ends can be dumped until nothing is left in it")
    func ending() {
        var dumps: [[String?]] = []
        withSimulation { simulation in
            let names = Locked<[[String?]]>([])
            LoopThread(name: "short") { loop in
                for name in ["first", "second"] {
                    let source = CustomSource()
                    source.name = name
                    source.cancelHandler = { loop, _ in
                        let dump = loop.dump()
                        names.withLock { $0.append(dump.items.map(\.name)) }
                    }
                    loop.add(source, forMode: .default)
                }
                loop.perform { loop.stop() }
            }.join()
            dumps = names.withLock { $0 }
        }
        #expect(dumps == [["second"], []], "a source that is told of its end is not in the loop any more")
    }
}
