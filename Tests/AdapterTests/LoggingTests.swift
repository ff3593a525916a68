#if Adapters
import Logging
@_spi(Ports) import RunLoopCore
import RunLoopKit
import RunLoopLibevent
import RunLoopLogging
import RunLoopSimulation
import Testing

/// A log handler that keeps its lines.
struct Memory: LogHandler {
    struct Line: Sendable {
        let level: Logger.Level
        let message: String
        let metadata: Logger.Metadata
    }

    let lines = Locked<[Line]>([])
    var logLevel = Logger.Level.trace
    var metadata = Logger.Metadata()

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        let line = Line(level: event.level, message: "\(event.message)", metadata: event.metadata ?? [:])
        lines.withLock { $0.append(line) }
    }
}

@Suite("Logging")
struct LoggingTests {
    @Test("a loop's actions are logged with their mode, and an ignored call as a notice")
    func trace() {
        let memory = Memory()
        withSimulation { simulation in
            let loop = simulation.loop
            loop.log(to: Logger(label: "loop") { _ in memory }, level: .debug)
            let timer = Timer.scheduledTimer(withTimeInterval: .seconds(1), repeats: false) { _ in }
            timer.name = "once"
            loop.run(in: .default)
            loop.add(timer, forMode: .default)
        }
        let lines = memory.lines.withLock { $0 }
        #expect(
            lines.prefix(3).map(\.message) == [
                "run default", "fire once due 1.000000000 missed 0", "end default finished",
            ])
        #expect(lines[3].message.hasPrefix("ignored: timer \"once\" (AdapterTests/LoggingTests.swift:"))
        #expect(lines[3].message.hasSuffix("was added, but it is invalid; make a new one"))
        #expect(lines.map(\.level) == [.debug, .debug, .debug, .notice])
        #expect(lines[1].metadata["mode"] == "default")
        #expect(lines[3].metadata["mode"] == nil)
    }

    @Test("a call that a loop ignores while it ends is logged, too")
    func ending() {
        let memory = Memory()
        do {
            let loop = RunLoop.real()
            loop.log(to: Logger(label: "loop") { _ in memory })
            let source = CustomSource()
            source.cancelHandler = { loop, _ in
                let timer = Timer(timeInterval: .seconds(1), repeats: false) { _ in }
                timer.invalidate()
                loop.add(timer, forMode: .default)
            }
            loop.add(source, forMode: .default)
        }
        #expect(memory.lines.withLock { $0.last?.message.hasPrefix("ignored: ") } == true)
    }

    @Test("a stall is logged with its handler, place and duration")
    func stalls() {
        let memory = Memory()
        withSimulation { simulation in
            let loop = simulation.loop
            let monitor = StallMonitor(loop, threshold: .seconds(1), logger: Logger(label: "stall") { _ in memory })
            let timer = Timer.scheduledTimer(withTimeInterval: .seconds(1), repeats: false) { _ in
                simulation.spend(.seconds(3))
            }
            timer.name = "slow"
            simulation.advance(by: .seconds(10))
            withExtendedLifetime(monitor) {}
        }
        let lines = memory.lines.withLock { $0 }
        #expect(lines.map(\.level) == [.warning, .warning])
        #expect(lines.map { $0.metadata["isOver"] } == ["false", "true"])
        #expect(lines[0].metadata["name"] == "slow")
        #expect(lines[0].metadata["mode"] == "default")
        #expect("\(lines[0].metadata["origin"]!)".hasPrefix("AdapterTests/LoggingTests.swift:"))
        #expect(lines[0].message.hasPrefix("timer \"slow\" ("))
    }
}
#endif
