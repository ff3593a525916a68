import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@_spi(Ports) @testable import RunLoopCore

@Suite("Rate limits")
struct RateLimitTests {
    /// Makes a source that is always ready, and records the times of its calls. Without a limit a call takes a
    /// millisecond; otherwise virtual time would stand still.
    private func chatty(_ simulation: Simulation, _ limit: RateLimit?, _ log: Log<String>) throws -> (
        DescriptorSource, DescriptorPair
    ) {
        let (loop, pipe) = (simulation.loop, DescriptorPair())
        pipe.write()
        let source = DescriptorSource(fileDescriptor: pipe.reader, events: .readable) { source, _ in
            log(loop.now.word)
            if source.rateLimit == nil { simulation.spend(.milliseconds(1)) }
        }
        source.rateLimit = limit
        try loop.add(source, forMode: .default)
        return (source, pipe)
    }

    @Test("a source that its limit holds back keeps no mode alive but its own, and none once it is invalid")
    func keepsNoOtherMode() throws {
        try withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let (source, pipe) = try chatty(simulation, RateLimit(interval: .seconds(10), burst: 1), log)
            loop.run(in: .default, until: ms(5))
            #expect(log.text == "0")
            #expect(loop.isEmpty("other"))
            #expect(loop.run(in: "other", until: ms(5000)) == .finished)
            #expect(loop.now == ms(5))
            source.invalidate()
            #expect(loop.isEmpty(.default))
            #expect(loop.run(in: .default, until: ms(5000)) == .finished)
            #expect(loop.now == ms(5))
            withExtendedLifetime(pipe) {}
        }
    }

    @Test("a wider limit, or none, counts at once")
    func widened() throws {
        try withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let (source, pipe) = try chatty(simulation, RateLimit(interval: .seconds(10), burst: 2), log)
            let beat = loop.timer(1, every: 1) { _ in }
            loop.run(in: .default, until: ms(5))
            #expect(log.text == "0 0")
            log.clear()
            source.rateLimit = RateLimit(interval: .seconds(10), burst: 3)
            loop.run(in: .default, until: ms(8))
            #expect(log.entries.count == 1, "one more than those two")
            source.rateLimit = RateLimit(interval: .milliseconds(10), burst: 1)
            loop.run(in: .default, until: ms(15))
            #expect(log.entries.dropFirst() == ["10"], "10 ms after the first of those three")
            source.rateLimit = nil
            log.clear()
            loop.run(in: .default, until: ms(17))
            #expect(log.entries.count >= 2)
            beat.invalidate()
            withExtendedLifetime(pipe) {}
        }
    }

    @Test("a narrower limit holds back at once")
    func narrowed() throws {
        try withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let (source, pipe) = try chatty(simulation, RateLimit(interval: .milliseconds(10), burst: 1), log)
            loop.run(in: .default, until: ms(5))
            source.rateLimit = RateLimit(interval: .milliseconds(30), burst: 1)
            loop.run(in: .default, until: ms(40))
            #expect(log.text == "0 30")
            withExtendedLifetime(pipe) {}
        }
    }

    @Test("a source that its limit holds back continues in another mode that it joined meanwhile")
    func otherModes() throws {
        try withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let (source, pipe) = try chatty(simulation, RateLimit(interval: .milliseconds(10), burst: 1), log)
            loop.run(in: .default, until: ms(5))
            try loop.add(source, forMode: .tracking)
            loop.run(in: .tracking, until: ms(15))
            #expect(log.text == "0 10")
            loop.remove(source, forMode: [.default, .tracking])
            #expect(loop.isEmpty(.default) && loop.isEmpty(.tracking))
            loop.checkInvariants()
            withExtendedLifetime(pipe) {}
        }
    }

    @Test("a custom source stays signalled, and is served when its limit lets it")
    func customSource() {
        withSimulation { simulation in
            let (loop, log) = (simulation.loop, Log<String>())
            let source = CustomSource { _ in log(loop.now.word) }
            source.rateLimit = RateLimit(interval: .milliseconds(10), burst: 1)
            loop.add(source, forMode: .default)
            loop.timer(1, every: 1) { _ in source.signal() }
            loop.run(in: .default, until: ms(35))
            #expect(log.text == "1 11 21 31")
            #expect(source.isSignalled)
            source.rateLimit = nil
            loop.run(in: .default, until: ms(37))
            #expect(log.entries.dropFirst(4).first == "35")
        }
    }
}
