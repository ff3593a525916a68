import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@_spi(Ports) @testable import RunLoopCore

/// Descriptors that become ready while their source cannot be called: out of its mode, or while its handler is on the
/// stack.
@Suite("Parked descriptors")
struct ParkedDescriptorTests {
    /// Makes a source that reads one byte and writes "R", the mode and the time into the log.
    private func reader(
        _ pair: DescriptorPair, _ log: Log<String>, in loop: RunLoop, _ modes: RunLoop.Modes
    ) throws -> DescriptorSource {
        let source = DescriptorSource(fileDescriptor: pair.reader, events: .readable) { [unowned loop] _, _ in
            pair.read()
            log("R:\(loop.currentMode!):\(loop.now.word)")
        }
        try loop.add(source, forMode: modes)
        return source
    }

    @Test("an out-of-mode descriptor does not spin the loop: it is parked once")
    func noSpin() throws {
        try withSimulation { simulation in
            let (loop, log, pair) = (simulation.loop, Log<String>(), DescriptorPair())
            _ = try reader(pair, log, in: loop, .tracking)
            pair.write()
            loop.timer(1000, every: 1000) { _ in loop.checkInvariants() }
            #expect(loop.run(in: .default, until: ms(10_500)) == .timedOut)
            #expect(log.text == "")
            #expect(loop.statistics.parks == 1)
            #expect(loop.statistics.fires == 10)
            // One for the parking, one for each fire, one for the limit.
            #expect(loop.statistics.passes == 12)
        }
    }

    @Test("a parked descriptor is delivered once, when a mode of its source runs (R73)")
    func delivered() throws {
        try withSimulation { simulation in
            let (loop, log, pair) = (simulation.loop, Log<String>(), DescriptorPair())
            _ = try reader(pair, log, in: loop, .tracking)
            loop.keepAlive()
            pair.write()
            #expect(loop.run(in: .default, until: ms(50)) == .timedOut)
            #expect(loop.run(in: .tracking, until: ms(100), returnAfterSourceHandled: true) == .handledSource)
            #expect(log.text == "R:tracking:50")
            #expect(loop.run(in: .tracking, until: ms(100)) == .timedOut)
            #expect(log.text == "R:tracking:50")
            #expect(loop.now == ms(100))
            #expect(loop.statistics.parks == 1)
        }
    }

    @Test("hang-up of a parked descriptor does not spin")
    func hangUp() throws {
        try withSimulation { simulation in
            let (loop, log, pair) = (simulation.loop, Log<String>(), DescriptorPair(.socketPair))
            let source = try reader(pair, log, in: loop, .tracking)
            loop.keepAlive()
            pair.write()
            loop.timer(10) { _ in pair.closeWriter() }
            #expect(loop.run(in: .default, until: ms(1000)) == .timedOut)
            #expect(loop.statistics.parks == 1)
            // One for the parking, one for the fire, one for the limit.
            #expect(loop.statistics.passes == 3)
            #expect(log.text == "")
            source.invalidate()
            loop.checkInvariants()
        }
    }

    @Test("repeated parking and delivering loses nothing (R73)")
    func again() throws {
        try withSimulation { simulation in
            let (loop, log, pair) = (simulation.loop, Log<String>(), DescriptorPair())
            _ = try reader(pair, log, in: loop, .tracking)
            loop.keepAlive()
            for round in 1...5 {
                pair.write()
                loop.run(in: .default, until: ms(Int64(round) * 100 - 50))
                #expect(log.entries.count == round - 1)
                loop.run(in: .tracking, until: ms(Int64(round) * 100))
                #expect(log.entries.count == round)
                loop.checkInvariants()
            }
            #expect(loop.statistics.parks == 5)
        }
    }

    @Test("a descriptor parked by a poll of another mode is delivered when its own mode runs again (R73)")
    func parkedByPoll() throws {
        try withSimulation { simulation in
            let (loop, log, pair) = (simulation.loop, Log<String>(), DescriptorPair())
            _ = try reader(pair, log, in: loop, .default)
            loop.keepAlive(in: .tracking)
            for round in 1...3 {
                pair.write()
                #expect(loop.run(in: .tracking, until: .distantPast) == .timedOut)
                #expect(loop.statistics.parks == round)
                #expect(loop.run(mode: .default, before: loop.now + .milliseconds(10)))
                #expect(log.entries.count == round, "round \(round)")
                loop.checkInvariants()
            }
            #expect(loop.now == ms(0))
        }
    }

    @Test("a descriptor parked in a nested run is delivered when the outer mode continues (R73)")
    func parkedInNestedRun() throws {
        try withSimulation { simulation in
            let (loop, log, pair) = (simulation.loop, Log<String>(), DescriptorPair())
            _ = try reader(pair, log, in: loop, .default)
            loop.keepAlive(in: .tracking)
            loop.timer(10, every: 100) { _ in
                loop.perform(at: loop.now + .milliseconds(10), inModes: .tracking) { pair.write() }
                loop.run(in: .tracking, until: loop.now + .milliseconds(30))
            }
            loop.run(in: .default, until: ms(300))
            #expect(log.text == "R:default:40 R:default:140 R:default:240")
            #expect(loop.statistics.parks == 3)
        }
    }

    @Test("a parked source that joins the running mode is delivered there")
    func joinsMode() throws {
        try withSimulation { simulation in
            let (loop, log, pair) = (simulation.loop, Log<String>(), DescriptorPair())
            let source = try reader(pair, log, in: loop, .tracking)
            pair.write()
            loop.timer(20) { _ in #expect(throws: Never.self) { try loop.add(source, forMode: .default) } }
            loop.run(in: .default, until: ms(50))
            #expect(log.text == "R:default:20")
            #expect(loop.statistics.parks == 1)
        }
    }

    @Test("a parked source of a mode that becomes common is delivered there")
    func becomesCommon() throws {
        try withSimulation { simulation in
            let (loop, log, pair) = (simulation.loop, Log<String>(), DescriptorPair())
            _ = try reader(pair, log, in: loop, .common)
            loop.timer(20, in: .tracking) { _ in loop.addCommonMode(.tracking) }
            pair.write()
            loop.run(in: .tracking, until: ms(50))
            #expect(log.text == "R:tracking:20")
        }
    }

    @Test("a parked source that is invalidated is forgotten, and its slot serves another")
    func invalidatedWhileParked() throws {
        try withSimulation { simulation in
            let (loop, log, pair, other) = (simulation.loop, Log<String>(), DescriptorPair(), DescriptorPair())
            let source = try reader(pair, log, in: loop, .tracking)
            loop.keepAlive()
            pair.write()
            loop.run(in: .default, until: ms(10))
            #expect(source.parkedIndex != nil)
            source.invalidate()
            #expect(source.parkedIndex == nil)
            loop.checkInvariants()
            _ = try reader(other, log, in: loop, .tracking)
            loop.run(in: .tracking, until: ms(20))
            #expect(log.text == "")
            other.write()
            loop.run(in: .tracking, until: ms(30))
            #expect(log.text == "R:tracking:20")
        }
    }

    @Test("a nested run serves a descriptor that the outer run collected, and the outer run does not serve it again")
    func nestedServesCollected() throws {
        try withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let pairs = [DescriptorPair(), DescriptorPair()]
            for pair in pairs { pair.write() }
            let first = DescriptorSource(fileDescriptor: pairs[0].reader, events: .readable) { _, _ in
                log("first<")
                pairs[0].read()
                loop.run(in: .default, until: .distantPast)
                log("first>")
            }
            let second = DescriptorSource(fileDescriptor: pairs[1].reader, events: .readable) { _, _ in
                pairs[1].read()
                log("second")
            }
            try loop.add(first, forMode: .default)
            try loop.add(second, forMode: .default)
            loop.run(in: .default, until: ms(10))
            #expect(log.text == "first< second first>")
            #expect(loop.statistics.sources == 2)
        }
    }

    @Test("a nested run in another mode parks a descriptor that the outer run collected, and nothing is lost")
    func nestedParksCollected() throws {
        try withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let pairs = [DescriptorPair(), DescriptorPair()]
            for pair in pairs { pair.write() }
            loop.keepAlive(in: .tracking)
            let first = DescriptorSource(fileDescriptor: pairs[0].reader, events: .readable) { _, _ in
                log("first<")
                pairs[0].read()
                loop.run(in: .tracking, until: .distantPast)
                log("first>")
            }
            let second = DescriptorSource(fileDescriptor: pairs[1].reader, events: .readable) { _, _ in
                pairs[1].read()
                log("second")
            }
            try loop.add(first, forMode: .default)
            try loop.add(second, forMode: .default)
            loop.run(in: .default, until: ms(10))
            #expect(log.text == "first< first> second")
            loop.checkInvariants()
        }
    }

    @Test("a handler is not re-entered: its descriptor is parked without a spin, and reported again afterwards")
    func notReentered() throws {
        try withSimulation { simulation in
            let (loop, log, pair) = (simulation.loop, Log<String>(), DescriptorPair())
            pair.write(2)
            let source = DescriptorSource(fileDescriptor: pair.reader, events: .readable) { source, _ in
                log("R<")
                pair.read()
                let passes = loop.statistics.passes
                #expect(loop.run(in: .default, until: loop.now + .milliseconds(100)) == .timedOut)
                #expect(loop.statistics.passes - passes <= 2)
                log("R>")
            }
            try loop.add(source, forMode: .default)
            loop.run(in: .default, until: ms(500))
            #expect(log.text == "R< R> R< R>")
            #expect(loop.now == ms(500))
            #expect(loop.statistics.parks == 1)
            loop.checkInvariants()
        }
    }

    @Test("a source that invalidates itself while a nested run parks it is freed")
    func invalidatedInNestedRun() throws {
        try withSimulation { simulation in
            let (loop, log, pair) = (simulation.loop, Log<String>(), DescriptorPair())
            pair.write(2)
            loop.keepAlive()
            weak var kept: DescriptorSource?
            do {
                let source = DescriptorSource(fileDescriptor: pair.reader, events: .readable) { source, _ in
                    log("R")
                    loop.run(in: .default, until: .distantPast)
                    #expect(source.parkedIndex != nil)
                    source.invalidate()
                }
                kept = source
                try loop.add(source, forMode: .default)
            }
            loop.run(in: .default, until: ms(10))
            #expect(log.text == "R")
            #expect(kept == nil)
            loop.checkInvariants()
        }
    }

    @Test("a descriptor that is ready while no mode of its runs does not keep virtual time from moving")
    func readyWhileNothingRuns() throws {
        try withSimulation { simulation in
            let loop = simulation.loop
            let pipe = DescriptorPair()
            var calls = 0
            let source = DescriptorSource(fileDescriptor: pipe.reader, events: .readable) { _, _ in
                calls += 1
                pipe.drain()
            }
            try loop.add(source, forMode: .tracking)
            pipe.write()
            simulation.advance(by: .seconds(1))
            #expect(simulation.now == ms(1_000))
            #expect(calls == 0)
            loop.run(in: .tracking, until: loop.now)
            #expect(calls == 1)
        }
    }
}
