#if Adapters
import NIOCore
import RunLoopExploration
import RunLoopHosts
import RunLoopKit
import RunLoopNIO
import RunLoopSimulation
import RunLoopTesting
import TestSupport
import Testing

/// Answers each line: `get` with the sum, `set N` and `add N` after a change of it.
private final class Account: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let sum: NIOLoopBoundBox<Int>
    private var rest = ""

    init(_ sum: NIOLoopBoundBox<Int>) { self.sum = sum }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        rest += String(buffer: unwrapInboundIn(data))
        while let end = rest.firstIndex(of: "\n") {
            let line = rest[..<end]
            rest = String(rest[rest.index(after: end)...])
            let words = line.split(separator: " ")
            switch words[0] {
            case "set": sum.value = Int(words[1])!
            case "add": sum.value += Int(words[1])!
            default: break
            }
            context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: "\(sum.value)\n")), promise: nil)
        }
    }
}

/// A client that adds one to an account, and tries again after a lost connection; waits longer after each failure.
private final class Client: Sendable {
    private let group: RunLoopEventLoop
    private let log: Log<String>
    private let isAtomic: Bool

    init(on group: RunLoopEventLoop, isAtomic: Bool, _ log: Log<String>) {
        (self.group, self.isAtomic, self.log) = (group, isAtomic, log)
    }

    func run(delay: TimeAmount = .seconds(1)) {
        let asker = { @Sendable [isAtomic, log] in Asker(isAtomic: isAtomic, log) }
        RunLoopClientBootstrap(group: group)
            .connectTimeout(.seconds(5))
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(asker()) }
            }
            .connect(host: "server", port: 7)
            .whenComplete { result in
                switch result {
                case .success(let channel):
                    channel.closeFuture.whenComplete { _ in self.again(after: .seconds(1)) }
                case .failure: self.again(after: delay)
                }
            }
    }

    private func again(after delay: TimeAmount) {
        guard !log.entries.contains(where: { $0.hasPrefix("done") }) else { return }
        log("again at \(group.now.uptimeNanoseconds / 1_000_000_000)")
        group.scheduleTask(in: delay) { self.run(delay: delay * 2) }
    }
}

private final class Asker: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let isAtomic: Bool
    private let log: Log<String>
    private var hasSet = false
    private var rest = ""

    init(isAtomic: Bool, _ log: Log<String>) { (self.isAtomic, self.log) = (isAtomic, log) }

    private func send(_ text: String, _ context: ChannelHandlerContext) {
        context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: text + "\n")), promise: nil)
    }

    func channelActive(context: ChannelHandlerContext) { send(isAtomic ? "add 1" : "get", context) }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        rest += String(buffer: unwrapInboundIn(data))
        guard rest.last == "\n" else { return }
        let answer = rest.dropLast()
        rest = ""
        guard isAtomic || hasSet else {
            hasSet = true
            return send("set \(Int(answer)! + 1)", context)
        }
        log("done \(answer)")
        context.close(promise: nil)
    }
}

@Suite("SwiftNIO's handlers in a world with faults")
struct SimulatedFaultTests {
    private func serve(_ loop: RunLoop, log: Log<String>? = nil) {
        let sum = NIOLoopBoundBox(0, eventLoop: loop.nio)
        RunLoopServerBootstrap(group: loop.nio)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandlers(
                        IdleStateHandler(readTimeout: .minutes(6)), Closer(log), Account(sum))
                }
            }
            .bind(host: "0.0.0.0", port: 7)
            .whenFailure { log?("bind: \($0)") }
    }

    @Test("a client waits longer after each failure until its server has started again")
    func crash() {
        func story(seed: UInt64) -> [String] {
            let log = Log<String>()
            withSimulation(seed: seed) { simulation in
                simulation.captureExecutors()
                let network = SimulatedNetwork(simulation)
                network.link.latency = .seconds(1)
                let server = network.addHost("server") { self.serve($0) }
                network.addHost("client") { Client(on: $0.nio, isAtomic: true, log).run() }
                simulation.advance(by: .milliseconds(1_500))
                server.crash()
                simulation.advance(by: .seconds(60))
                #expect(log.entries.count > 3 && !log.entries.contains { $0.hasPrefix("done") }, "\(log.entries)")
                server.start()
                simulation.advance(by: .seconds(600))
            }
            return log.entries
        }
        let log = story(seed: 1)
        #expect(log.last == "done 1", "\(log)")
        let times = log.dropLast().compactMap { Int($0.split(separator: " ").last!) }
        let pauses = zip(times.dropFirst(), times).map { $0 - $1 }
        #expect(pauses == pauses.sorted() && Set(pauses).count > 2, "\(pauses)")
        #expect(story(seed: 1) == log)
    }

    @Test("SwiftNIO's idle handler closes after six minutes of virtual time")
    func idle() {
        let log = Log<String>()
        withSimulation { simulation in
            simulation.captureExecutors()
            let network = SimulatedNetwork(simulation)
            network.addHost("server") { self.serve($0, log: log) }
            network.addHost("client") { loop in
                let group = loop.nio
                RunLoopClientBootstrap(group: group).connect(host: "server", port: 7).whenSuccess { channel in
                    let begin = group.now
                    group.scheduleTask(in: .minutes(5)) {
                        channel.writeAndFlush(ByteBuffer(string: "get\n"), promise: nil)
                    }
                    channel.closeFuture.whenComplete { _ in
                        log("closed after \((group.now - begin).nanoseconds / 1_000_000_000) s")
                    }
                }
            }
            simulation.advance(by: .seconds(3_600))
        }
        #expect(log.entries == ["idle", "closed after 660 s"])
    }

    private func withdraw(_ simulation: Simulation, isAtomic: Bool) throws {
        let log = Log<String>()
        let network = SimulatedNetwork(simulation)
        network.addHost("server") { self.serve($0) }
        for name in ["one", "other"] {
            network.addHost(name) { Client(on: $0.nio, isAtomic: isAtomic, log).run() }
        }
        simulation.advance(by: .seconds(30))
        let sums = log.entries.filter { $0.hasPrefix("done") }
        guard sums.contains("done 2") else { throw Lost(sums: sums) }
    }

    private struct Lost: Error, CustomStringConvertible {
        let sums: [String]
        var description: String { "two have added one, and the answers are \(sums)" }
    }

    @Test("exploration finds the order in which two clients overwrite each other, and none if the server adds")
    func explored() throws {
        let result = Exploration(schedules: 500).run { try withdraw($0, isAtomic: false) }
        guard case .failed(let finding) = result else {
            Issue.record("\(result)")
            return
        }
        #expect(finding.fault.description.contains("two have added one"), "\(finding)")
        let again = Exploration().replay(finding.token) { try withdraw($0, isAtomic: false) }
        #expect(again?.description == finding.fault.description)
        let mended = Exploration(schedules: 500).run { try withdraw($0, isAtomic: true) }
        if case .failed(let finding) = mended { Issue.record("\(finding)") }
    }
}

/// Closes a channel that is idle.
private final class Closer: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let log: Log<String>?

    init(_ log: Log<String>?) { self.log = log }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard event is IdleStateHandler.IdleStateEvent else { return context.fireUserInboundEventTriggered(event) }
        log?("idle")
        context.close(promise: nil)
    }
}
#endif
