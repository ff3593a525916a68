import Logging
import NIOCore
import NIOHTTP1
import RunLoopHosts
import RunLoopKit
import RunLoopNIO
import RunLoopSimulation
import RunLoopUnix
import WebServer

/// A few seconds of a daemon and two clients that upload files.
///
/// Open are the times when the daemon's host crashes or is cut off, when the daemon is killed, stopped or reloaded, and
/// when a client leaves; and the number of the daemon's loops.
///
/// Unchecked: in a simulation only the thread whose turn it is gets here.
final class ExploredUpload: @unchecked Sendable {
    private let simulation: Simulation
    private let network: SimulatedNetwork
    private let web: SimulatedHost
    private var stored: [String: [UInt8]] = [:]
    private var failures: [String] = []
    /// The last connection of each client.
    private var channels: [Int: any Channel] = [:]

    /// A promise broken by the daemon.
    struct Broken: Error, CustomStringConvertible {
        let description: String
    }

    init(_ simulation: Simulation) {
        self.simulation = simulation
        network = SimulatedNetwork(simulation)
        let threads = simulation.choice("loops", of: [1, 2])
        web = network.addHost("web", addresses: ["10.1.0.1"]) { _ in
            var settings = Settings()
            (settings.address, settings.port, settings.threads) = ("0.0.0.0", 80, threads)
            (settings.uploads, settings.drainTime) = ("/uploads", .seconds(1))
            _ = try WebDaemon(settings, Logger(label: "web", factory: { _ in SwiftLogNoOpLogHandler() })).run()
        }
        web.disk.slow(.sync, by: .milliseconds(5))
    }

    func run() throws {
        simulation.mayHappen("the host crashes") { [web] in web.crash() }
        simulation.mayHappen("the daemon is killed") { [web] in web.send(.kill) }
        simulation.mayHappen("the daemon is stopped") { [web] in web.send(.terminate) }
        simulation.mayHappen("the daemon reloads") { [web] in web.send(.hangUp) }
        simulation.mayHappen("the host is cut off") { [network, web] in network.partition([web]) }
        simulation.mayHappen("a client leaves", atMost: 2) { [self] in
            // Not from within a call of the client's own.
            simulation.loop.perform { [self] in channels[1]?.close(promise: nil) }
        }
        for number in 1...2 { upload(client: number, file: 1) }
        for _ in 0..<8 {
            simulation.advance(by: .milliseconds(500))
            if case .failed(let error)? = web.ending { failures.append("the daemon has failed: \(error)") }
            check()
            web.start()
            network.heal()
        }
        simulation.advance(by: .seconds(5))
        web.send(.terminate)
        simulation.advance(by: .seconds(10))
        check()
        let names = web.disk.contentsOfDirectory(at: "/uploads") ?? []
        if !names.allSatisfy({ $0.hasPrefix("c") }) { failures.append("incomplete files are left: \(names)") }
        if let failure = failures.first { throw Broken(description: failure) }
    }

    private func check() {
        for (name, content) in stored.sorted(by: { $0.key < $1.key })
        where web.disk.contents(of: "/uploads/\(name)") != content {
            failures.append("the acknowledged upload \(name) is not whole")
        }
    }

    /// Uploads a file, and then the next one, whatever becomes of the first.
    private func upload(client: Int, file: Int) {
        guard file <= 3 else { return }
        let (name, content) = ("c\(client)-\(file)", [UInt8](repeating: UInt8(16 * client + file), count: 3_000))
        RunLoopClientBootstrap(group: simulation.loop.nio)
            .channelInitializer { [self] channel in
                channels[client] = channel
                return channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHTTPClientHandlers()
                    try channel.pipeline.syncOperations.addHandler(
                        Upload(name, content) { [self] in
                            if $0 { stored[name] = content }
                            simulation.loop.perform(afterDelay: .milliseconds(200)) { [self] in
                                upload(client: client, file: file + 1)
                            }
                        })
                }
            }
            .connect(host: "10.1.0.1", port: 80)
            .whenFailure { [self] _ in
                simulation.loop.perform(afterDelay: .milliseconds(200)) { [self] in
                    upload(client: client, file: file + 1)
                }
            }
    }

    private final class Upload: ChannelInboundHandler {
        typealias InboundIn = HTTPClientResponsePart
        typealias OutboundOut = HTTPClientRequestPart

        private let (name, content): (String, [UInt8])
        private let ended: (Bool) -> Void
        private var isStored = false

        init(_ name: String, _ content: [UInt8], ended: @escaping (Bool) -> Void) {
            (self.name, self.content, self.ended) = (name, content, ended)
        }

        func channelActive(context: ChannelHandlerContext) {
            let headers: HTTPHeaders = ["host": "web", "content-length": "\(content.count)"]
            let head = HTTPRequestHead(version: .http1_1, method: .PUT, uri: "/uploads/\(name)", headers: headers)
            context.write(wrapOutboundOut(.head(head)), promise: nil)
            send(from: 0, context)
            let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
            context.eventLoop.scheduleTask(in: .seconds(1)) { bound.value.close(promise: nil) }
        }

        /// Sends the content in pieces, between which events may happen.
        private func send(from start: Int, _ context: ChannelHandlerContext) {
            guard start < content.count else {
                return context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
            }
            let piece = ByteBuffer(bytes: content[start..<start + 1_000])
            context.writeAndFlush(wrapOutboundOut(.body(.byteBuffer(piece))), promise: nil)
            let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
            context.eventLoop.scheduleTask(in: .milliseconds(20)) {
                let (upload, context) = bound.value
                if context.channel.isActive { upload.send(from: start + 1_000, context) }
            }
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            switch unwrapInboundIn(data) {
            case .head(let head): isStored = head.status == .created
            case .body: break
            case .end: context.close(promise: nil)
            }
        }

        func channelInactive(context: ChannelHandlerContext) { ended(isStored) }

        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    }
}
