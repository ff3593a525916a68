import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@testable import RunLoopCore

@Suite("Fairness among sources")
struct FairnessTests {
    @Test("sources that are ready are served by their order, equal ones as they were found")
    func order() throws {
        try withSimulation { simulation in
            let loop = simulation.loop
            let log = Log<String>()
            let pipes = (0..<4).map { _ in DescriptorPair() }
            for (pipe, entry) in zip(pipes, [("a", 5), ("b", -1), ("c", 5), ("d", 0)]) {
                let source = DescriptorSource(fileDescriptor: pipe.reader, events: .readable, order: entry.1) { _, _ in
                    log(entry.0)
                    pipe.drain()
                }
                try loop.add(source, forMode: .default)
                pipe.write()
            }
            loop.run(in: .default, until: ms(1))
            #expect(log.text == "b d a c")
        }
    }

    @Test("a descriptor that is always ready is served once a pass, beside timers, blocks and others")
    func chattyDescriptor() throws {
        try withSimulation { simulation in
            let loop = simulation.loop
            let (chatty, quiet) = (DescriptorPair(), DescriptorPair())
            var calls = (chatty: 0, quiet: 0, fires: 0, blocks: 0)
            chatty.write()
            quiet.write()
            try loop.add(
                DescriptorSource(fileDescriptor: chatty.reader, events: .readable, order: -10) { _, _ in
                    calls.chatty += 1
                    simulation.spend(.milliseconds(1))
                }, forMode: .default)
            try loop.add(
                DescriptorSource(fileDescriptor: quiet.reader, events: .readable) { _, _ in calls.quiet += 1 },
                forMode: .default)
            loop.timer(10, every: 10) { _ in calls.fires += 1 }
            func post() {
                loop.perform {
                    calls.blocks += 1
                    post()
                }
            }
            post()
            loop.run(in: .default, until: ms(1_000))
            #expect(calls.chatty >= 999)
            #expect(calls.quiet == calls.chatty)
            #expect(calls.fires == 100)
            #expect(calls.blocks >= calls.chatty)
        }
    }

    @Test("a rate-limited descriptor is called as often as its limit allows, and input ready meanwhile is not lost")
    func rateLimit() throws {
        try withSimulation { simulation in
            let loop = simulation.loop
            let pipe = DescriptorPair()
            var dates: [String] = []
            let source = DescriptorSource(fileDescriptor: pipe.reader, events: .readable) { _, _ in
                dates.append(loop.now.word)
            }
            source.rateLimit = RateLimit(interval: .milliseconds(100), burst: 3)
            try loop.add(source, forMode: .common)
            loop.timer(5) { _ in pipe.write() }
            loop.run(in: .default, until: ms(250))
            #expect(dates == ["5", "5", "5", "105", "105", "105", "205", "205", "205"])
            let passes = loop.statistics.passes
            #expect(passes < 30, "a source that waits for its interval does not spin")
        }
    }

    @Test("a custom source with a rate limit stays signalled until it may be called")
    func customSource() {
        withSimulation { simulation in
            let loop = simulation.loop
            var dates: [String] = []
            let source = CustomSource { source in
                dates.append(loop.now.word)
                if loop.now < ms(150) { source.signal() }
            }
            source.rateLimit = RateLimit(interval: .milliseconds(50), burst: 2)
            loop.add(source, forMode: .default)
            source.signal()
            loop.run(in: .default, until: ms(400))
            #expect(dates == ["0", "0", "50", "50", "100", "100", "150"])
            #expect(loop.statistics.passes < 30)
        }
    }
}
