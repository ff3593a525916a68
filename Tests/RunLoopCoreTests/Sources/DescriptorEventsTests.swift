import Glibc
import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@_spi(Ports) @testable import RunLoopCore

@Suite("The events of a descriptor source")
struct DescriptorEventsTests {
    private func source(_ pair: DescriptorPair, _ events: DescriptorEvents, _ log: Log<String>, in loop: RunLoop) throws
        -> DescriptorSource
    {
        let source = DescriptorSource(fileDescriptor: pair.reader, events: events) { _, found in log("\(found)") }
        try loop.add(source, forMode: .default)
        return source
    }

    @Test("a source that watches for nothing is paused: it stays in its modes, and is not called")
    func paused() throws {
        try withSimulation { simulation in
            let (loop, log, pair) = (simulation.loop, Log<String>(), DescriptorPair(.socketPair))
            pair.write()
            let source = try source(pair, [], log, in: loop)
            #expect(source.description.contains("descriptor"))
            #expect(!loop.isEmpty(.default))
            loop.run(in: .default, until: ms(1))
            #expect(log.text == "")
            source.events = .readable
            loop.poll()
            source.events = []
            loop.poll()
            #expect(log.text == "readable")
            #expect(source.events.description == "none")
            loop.checkInvariants()
            source.invalidate()
        }
    }

    @Test("a handler can change the events, and events that are no longer asked for are not delivered")
    func changedInHandler() throws {
        try withSimulation { simulation in
            let (loop, log, pair) = (simulation.loop, Log<String>(), DescriptorPair(.socketPair))
            pair.write()
            let source = DescriptorSource(fileDescriptor: pair.reader, events: [.readable, .writable]) {
                source, found in
                log("\(found)")
                source.events = source.events == [.readable, .writable] ? .writable : []
            }
            try loop.add(source, forMode: .default)
            for _ in 0..<4 { loop.poll() }
            #expect(
                log.entries == ["readable,", "writable", "writable"]
                    || log.entries == ["readable, writable", "writable"])
            loop.checkInvariants()
        }
    }

    @Test("an event that was found before its source was paused is not delivered")
    func collected() throws {
        try withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let pairs = [DescriptorPair(), DescriptorPair()]
            var sources: [DescriptorSource] = []
            for (index, pair) in pairs.enumerated() {
                pair.write()
                let source = DescriptorSource(fileDescriptor: pair.reader, events: .readable) { _, _ in
                    log("S\(index)")
                    sources[1 - index].events = []
                }
                sources.append(source)
                try loop.add(source, forMode: .default)
            }
            loop.poll()
            loop.poll()
            #expect(log.text == "S0 S0")
        }
    }

    @Test("a parked source keeps to the events that it was given meanwhile")
    func parked() throws {
        try withSimulation { simulation in
            let (loop, log, pair) = (simulation.loop, Log<String>(), DescriptorPair())
            pair.write()
            let source = try source(pair, .readable, log, in: loop)
            let keepAlive = loop.keepAlive(in: .tracking)
            loop.run(in: .tracking, until: ms(1))
            #expect(source.parkedIndex != nil)
            source.events = []
            loop.run(in: .default, until: ms(2))
            #expect(log.text == "")
            source.events = .readable
            loop.poll()
            #expect(log.text == "readable")
            loop.checkInvariants()
            keepAlive.invalidate()
        }
    }

    @Test("a source that is released without ever having been added is reported once, and no other is")
    func neverAdded() throws {
        try withSimulation { simulation in
            let (loop, log, pair) = (simulation.loop, Log<String>(), DescriptorPair())
            var ignored: [String] = []
            loop.trace = { if case .ignored(let what) = $0 { ignored.append(what) } }
            loop.remove(try source(pair, .readable, log, in: loop), forMode: .default)
            CustomSource { _ in }.invalidate()
            #expect(ignored.isEmpty)
            _ = DescriptorSource(fileDescriptor: pair.reader, events: .readable) { _, _ in }
            _ = CustomSource { _ in }
            #expect(ignored.count == 2)
            #expect(ignored[0].hasPrefix("descriptor (") && ignored[1].hasPrefix("source ("))
            #expect(ignored.allSatisfy { $0.hasSuffix("was released and had never been added to a loop") })
        }
    }

    @Test("a descriptor that was closed meanwhile invalidates its source, and the trace says so")
    func closed() throws {
        try withSimulation { simulation in
            let (loop, log, pair) = (simulation.loop, Log<String>(), DescriptorPair())
            var ignored: [String] = []
            loop.trace = { if case .ignored(let what) = $0 { ignored.append(what) } }
            let source = try source(pair, [], log, in: loop)
            var removals = 0
            source.removalHandler = { removals += 1 }
            pair.closeReader()
            source.events = .readable
            #expect(!source.isValid)
            #expect(removals == 1)
            #expect(ignored.count == 1 && ignored[0].contains("was invalidated"))
            #expect(loop.isEmpty(.default))
            loop.checkInvariants()
        }
    }

    @Test("a paused source refuses a descriptor that cannot be watched, as any other does")
    func refused() {
        withSimulation { simulation in
            let source = DescriptorSource(fileDescriptor: -1, events: []) { _, _ in }
            #expect(throws: DescriptorError.notOpen(-1)) { try simulation.loop.add(source, forMode: .default) }
        }
    }

    @Test("the removal handler is called once, regardless of how the source is taken out")
    func removal() throws {
        for way in 0..<3 {
            var removals = 0
            try withSimulation { simulation in
                let (loop, log, pair) = (simulation.loop, Log<String>(), DescriptorPair())
                let source = try source(pair, .readable, log, in: loop)
                source.removalHandler = { removals += 1 }
                switch way {
                case 0: source.invalidate()
                case 1: loop.remove(source, forMode: .default)
                default: break
                }
                withExtendedLifetime(pair) {}
            }
            #expect(removals == 1)
        }
    }
}
