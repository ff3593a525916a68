#if Adapters
import Dispatch
import Glibc
import NIOCore
import NIOPosix
import RunLoopKit
import RunLoopNIO
import TestSupport
import Testing

/// A step of a random program: of a handler, of the program that uses the channel, or of the peer.
enum Step: Hashable {
    case write(Int), flush, writeAndFlush(Int), read, close(CloseMode), setAutoRead(Bool)
    case wait, peerWrites(Int), peerReads, peerEnds
}

/// The events to which handlers of a random program answer.
enum Event: Hashable {
    case registered, active, read, readComplete, writability, inputClosed, outputClosed, error, inactive, unregistered
    case removed, promise
}

struct Program: CustomStringConvertible {
    var allowsHalfClosure: Bool
    var autoRead: Bool
    var maxMessagesPerRead: UInt
    var bufferSize: Int
    var waterMark: (low: Int, high: Int)
    /// `true` if writes have promises. Otherwise flushes of handlers that have input may be combined.
    var hasPromises: Bool
    var reactions: [Event: [Step]]
    var steps: [Step]

    var description: String {
        "\(hasPromises ? "with" : "without") promises, \(steps), answering \(reactions)"
    }

    init(using random: inout SeededGenerator) {
        let hasPromises = Bool.random(using: &random)
        func size(_ random: inout SeededGenerator) -> Int {
            switch Int.random(in: 0..<8, using: &random) {
            case 0: 0
            // With combined flushes, the system may have room for more or less of an excessive output.
            case 1 where hasPromises: Int.random(in: 20_000...150_000, using: &random)
            default: Int.random(in: 1...2_000, using: &random)
            }
        }
        func mode(_ random: inout SeededGenerator) -> CloseMode {
            // Not of the input: SwiftNIO then mistakes the end that it has made for the peer's.
            [.all, .output].randomElement(using: &random)!
        }
        func inner(_ random: inout SeededGenerator) -> Step {
            switch Int.random(in: 0..<12, using: &random) {
            case 0...2: .write(size(&random))
            case 3...4: .flush
            case 5...7: .writeAndFlush(size(&random))
            case 8...9: .read
            case 10: .setAutoRead(true)
            default: .close(mode(&random))
            }
        }
        allowsHalfClosure = Bool.random(using: &random)
        // Without it, SwiftNIO reads to the end of a peer that has ended, and a run loop's channel waits for a read.
        autoRead = true
        maxMessagesPerRead = UInt.random(in: 1...4, using: &random)
        bufferSize = [100, 256, 2_048].randomElement(using: &random)!
        let low = Int.random(in: 1...40_000, using: &random)
        waterMark = (low, low + Int.random(in: 0...40_000, using: &random))
        self.hasPromises = hasPromises
        reactions = [:]
        let events: [Event] = [
            .registered, .active, .read, .readComplete, .writability, .inputClosed, .outputClosed, .error, .inactive,
            .unregistered, .removed, .promise,
        ]
        for _ in 0..<Int.random(in: 0...3, using: &random) {
            let count = Int.random(in: 1...2, using: &random)
            reactions[events.randomElement(using: &random)!] = (0..<count).map { _ in inner(&random) }
        }
        if !hasPromises {
            reactions[.read] = (0..<Int.random(in: 2...4, using: &random)).map { _ in inner(&random) }
        }
        steps = []
        for _ in 0..<Int.random(in: 1...8, using: &random) {
            switch Int.random(in: 0..<10, using: &random) {
            case 0...4: steps.append(inner(&random))
            case 5...6: steps.append(.peerWrites(Int.random(in: 1...3_000, using: &random)))
            case 7: steps.append(.peerReads)
            case 8: steps.append(.peerEnds)
            default: steps.append(.wait)
            }
            if Bool.random(using: &random) { steps.append(.wait) }
        }
        if Bool.random(using: &random) { steps.append(.peerEnds) }
    }
}

/// Notes the events of its channel, and answers as its program says.
// Unchecked: the event loop's thread uses it, and the test's thread waits for that.
private final class Recorder: ChannelInboundHandler, @unchecked Sendable {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    let program: Program
    private(set) var trace: [String] = []
    private var answers = 0
    private var writes = 0
    private var isReadComplete = false
    private var context: ChannelHandlerContext?
    private var channel: (any Channel)?

    init(_ program: Program) {
        self.program = program
    }

    private func note(_ text: String, _ event: Event) {
        let state = channel.map { "\($0.isActive ? "" : " inactive")\($0.isWritable ? "" : " full")" } ?? ""
        trace.append(text + state)
        guard answers < 8, let steps = program.reactions[event] else { return }
        answers += 1
        for step in steps { take(step) }
    }

    func take(_ step: Step) {
        guard let channel else { return }
        func promise(_ name: String) -> EventLoopPromise<Void> {
            let promise = channel.eventLoop.makePromise(of: Void.self)
            promise.futureResult.whenComplete { result in
                switch result {
                case .success: self.note("\(name) succeeded", .promise)
                case .failure(let error): self.note("\(name) failed: \(Self.words(error))", .promise)
                }
            }
            return promise
        }
        func data(_ count: Int) -> ByteBuffer { ByteBuffer(repeating: 7, count: count) }
        switch step {
        // A channel that is closed already, not yet active, or about to learn of the peer's end fails assertions of
        // SwiftNIO.
        case .close where !channel.isActive || isReadComplete, .read where !channel.isActive: break
        case .write(let count):
            writes += 1
            channel.write(data(count), promise: program.hasPromises ? promise("write \(writes)") : nil)
        case .flush: channel.flush()
        case .writeAndFlush(let count):
            writes += 1
            channel.writeAndFlush(data(count), promise: program.hasPromises ? promise("write \(writes)") : nil)
        case .read: channel.read()
        case .close(let mode): channel.close(mode: mode, promise: promise("close \(mode)"))
        case .setAutoRead(let value):
            try? channel.syncOptions?.setOption(ChannelOptions.autoRead, value: value)
        case .wait, .peerWrites, .peerReads, .peerEnds: break
        }
    }

    private static func words(_ error: any Error) -> String {
        (error as? IOError).map { "errno \($0.errnoCode)" } ?? "\(error)"
    }

    func handlerAdded(context: ChannelHandlerContext) { (self.context, channel) = (context, context.channel) }
    func handlerRemoved(context: ChannelHandlerContext) { note("removed", .removed) }
    func channelRegistered(context: ChannelHandlerContext) { note("registered", .registered) }
    func channelUnregistered(context: ChannelHandlerContext) { note("unregistered", .unregistered) }
    func channelActive(context: ChannelHandlerContext) { note("active", .active) }
    func channelInactive(context: ChannelHandlerContext) { note("inactive", .inactive) }
    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        note("read \(unwrapInboundIn(data).readableBytes)", .read)
    }
    func channelReadComplete(context: ChannelHandlerContext) {
        isReadComplete = true
        note("read complete", .readComplete)
        isReadComplete = false
    }
    func channelWritabilityChanged(context: ChannelHandlerContext) { note("writability", .writability) }
    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        note("\(event)", event as? ChannelEvent == .inputClosed ? .inputClosed : .outputClosed)
    }
    func errorCaught(context: ChannelHandlerContext, error: any Error) { note("error \(Self.words(error))", .error) }

    /// Ends the reference of the handler to its channel.
    func forget() { (context, channel) = (nil, nil) }
}

private final class Echo: ChannelInboundHandler, Sendable {
    typealias InboundIn = ByteBuffer

    func channelRead(context: ChannelHandlerContext, data: NIOAny) { context.writeAndFlush(data, promise: nil) }
}

/// An event loop and its way to adopt a connected socket.
private struct Ground: Sendable {
    typealias Initializer = @Sendable (any Channel) -> EventLoopFuture<Void>

    let eventLoop: any EventLoop
    let connect: @Sendable (Int32, @escaping Initializer) -> EventLoopFuture<any Channel>
    /// The peers of channels that echo.
    private var others: [Int32] = []

    init(
        _ eventLoop: any EventLoop, otherChannels: Int,
        connect: @escaping @Sendable (Int32, @escaping Initializer) -> EventLoopFuture<any Channel>
    ) throws {
        (self.eventLoop, self.connect) = (eventLoop, connect)
        for _ in 0..<otherChannels {
            let (own, peer) = try Self.makePair()
            _ = try connect(own) { $0.pipeline.addHandler(Echo()) }.wait()
            others.append(peer)
        }
    }

    private static func makePair() throws -> (own: Int32, peer: Int32) {
        var ends: [Int32] = [-1, -1]
        guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0 else { throw Failure() }
        _ = fcntl(ends[1], F_SETFL, O_NONBLOCK)
        return (ends[0], ends[1])
    }

    /// Lets the event loop find the input that `body` sends together with the input of the other channels, some before
    /// it and some after.
    private func amongOthers(_ body: () -> Void) {
        let (isHeld, isSent) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        eventLoop.execute {
            isHeld.signal()
            isSent.wait()
        }
        isHeld.wait()
        for peer in others.prefix(others.count / 2) { send(peer, "x", 1, 0) }
        body()
        for peer in others.dropFirst(others.count / 2) { send(peer, "x", 1, 0) }
        isSent.signal()
    }

    func close() {
        for peer in others { Glibc.close(peer) }
    }

    /// Runs a program, and returns the events.
    ///
    /// - Parameter pause: the time that the event loop gets to notice what is ready.
    func run(_ program: Program, _ pause: TimeAmount) throws -> [String] {
        let (own, peer) = try Self.makePair()
        defer { Glibc.close(peer) }
        let recorder = Recorder(program)
        let channel = try connect(own) { Self.prepare($0, program, recorder) }.wait()
        settle(recorder, pause)
        var room = [UInt8](repeating: 0, count: 1 << 20)
        var (hasPeerEnded, received) = (false, 0)
        func receive() {
            while case let count = recv(peer, &room, room.count, 0), count > 0 {
                received += count
                settle(recorder, pause)
            }
        }
        for step in program.steps {
            switch step {
            case .wait: settle(recorder, pause)
            case .peerWrites(let count):
                settle(recorder, pause)
                amongOthers {
                    if !hasPeerEnded { _ = send(peer, room, count, Int32(MSG_NOSIGNAL)) }
                }
                settle(recorder, pause)
            case .peerReads:
                settle(recorder, pause)
                receive()
            case .peerEnds:
                settle(recorder, pause)
                hasPeerEnded = true
                amongOthers { shutdown(peer, Int32(SHUT_WR)) }
                settle(recorder, pause)
            default: try eventLoop.submit { recorder.take(step) }.wait()
            }
        }
        settle(recorder, pause)
        receive()
        for other in others { while recv(other, &room, room.count, 0) > 0 {} }
        channel.close(promise: nil)
        try channel.closeFuture.wait()
        settle(recorder, pause)
        let total = received
        return try eventLoop.submit {
            recorder.forget()
            return recorder.trace + ["the peer received \(total)"]
        }.wait()
    }

    /// Waits until no more events happen.
    private func settle(_ recorder: Recorder, _ pause: TimeAmount) {
        var (length, rounds) = (-1, 0)
        while rounds < 2 {
            // A timer, because before it fires the event loop asks the system for ready descriptors.
            let scheduled = eventLoop.scheduleTask(in: pause) { recorder.trace.count }
            guard let now = try? scheduled.futureResult.wait() else { return }
            rounds = now == length ? rounds + 1 : 0
            length = now
        }
    }

    struct Failure: Error {}

    @Sendable static func prepare(_ channel: any Channel, _ program: Program, _ recorder: Recorder)
        -> EventLoopFuture<Void>
    {
        channel.eventLoop.makeCompletedFuture {
            let options = channel.syncOptions!
            try options.setOption(ChannelOptions.allowRemoteHalfClosure, value: program.allowsHalfClosure)
            try options.setOption(ChannelOptions.maxMessagesPerRead, value: program.maxMessagesPerRead)
            try options.setOption(
                ChannelOptions.recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: program.bufferSize))
            try options.setOption(
                ChannelOptions.writeBufferWaterMark,
                value: .init(low: program.waterMark.low, high: program.waterMark.high))
            try channel.pipeline.syncOperations.addHandler(recorder)
        }
    }
}

@Suite("A channel beside SwiftNIO's own", .timeLimit(.minutes(60)))
struct ConformanceTests {
    @Test("random programs of handlers have the same events")
    func programs() throws {
        try withGrounds { theirs, ours in
            let first = UInt64(amount(of: "SEED", usually: 0))
            var differences = 0
            for seed in first..<first + UInt64(amount(of: "PROGRAMS", usually: 300)) {
                var random = SeededGenerator(seed: seed)
                let program = Program(using: &random)
                let (expected, found) = try traces(of: program, theirs, ours)
                guard expected != found else { continue }
                let same = zip(expected, found).prefix { $0 == $1 }.count
                func part(_ trace: [String]) -> String {
                    trace.dropFirst(max(0, same - 4)).prefix(12).joined(separator: ", ")
                }
                Issue.record(
                    "seed \(seed): \(program)\nSwiftNIO: \(part(expected))\nrun loop: \(part(found))")
                differences += 1
                if differences == 3 { return }
            }
        }
    }

    @Test("a handler that closes the channel just before its output ends still sees the output end")
    func closedBeforeOutputEnds() throws {
        try withGrounds { theirs, ours in
            var random = SeededGenerator(seed: 0)
            var program = Program(using: &random)
            (program.waterMark, program.hasPromises) = ((1, 20_000), false)
            program.steps = [.write(100), .close(.output), .write(30_000)]
            program.reactions = [.writability: [.flush, .close(.all)]]
            let (expected, found) = try traces(of: program, theirs, ours)
            #expect(expected == found)
            #expect(found.contains("outputClosed inactive"))
        }
    }

    private func withGrounds(_ body: (_ theirs: Ground, _ ours: Ground) throws -> Void) throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        defer { try? group.syncShutdownGracefully() }
        let thread = LoopThread(name: "nio") { loop in loop.add(CustomSource(), forMode: .common) }
        defer {
            thread.stop()
            thread.join()
        }
        let eventLoop = try thread.remote.performAndWait { $0.nio }
        let theirs = try Ground(group.next(), otherChannels: 6) { descriptor, initialize in
            ClientBootstrap(group: group).channelInitializer(initialize).withConnectedSocket(descriptor)
        }
        defer { theirs.close() }
        let ours = try Ground(eventLoop, otherChannels: 6) { descriptor, initialize in
            RunLoopClientBootstrap(group: eventLoop).channelInitializer(initialize).withConnectedSocket(descriptor)
        }
        defer { ours.close() }
        try body(theirs, ours)
    }

    private func traces(of program: Program, _ theirs: Ground, _ ours: Ground) throws -> ([String], [String]) {
        var (expected, found): ([String], [String]) = ([], [])
        // The event loop may not have looked at the socket before it was asked for its state.
        for pause: TimeAmount in [.microseconds(20), .microseconds(200), .milliseconds(2), .milliseconds(20)] {
            (expected, found) = (try theirs.run(program, pause), try ours.run(program, pause))
            if expected == found { break }
        }
        return (expected, found)
    }
}
#endif
