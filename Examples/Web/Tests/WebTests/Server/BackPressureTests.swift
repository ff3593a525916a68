import Logging
import NIOCore
import NIOHTTP1
import RunLoopHosts
import RunLoopKit
import RunLoopNIO
import RunLoopSimulation
import RunLoopTesting
import Synchronization
import Testing
import WebServer

@Suite("Uploads to a slow disk, simulated")
struct BackPressureTests {
    /// Sends bytes as fast as the connection takes them.
    private final class Sender: ChannelInboundHandler {
        typealias InboundIn = HTTPClientResponsePart
        typealias OutboundOut = HTTPClientRequestPart

        private let taken: Box
        private static let piece = ByteBuffer(repeating: 1, count: 10_000)

        init(_ taken: Box) {
            self.taken = taken
        }

        func channelActive(context: ChannelHandlerContext) {
            let head = HTTPRequestHead(
                version: .http1_1, method: .PUT, uri: "/uploads/a",
                headers: ["host": "web", "content-length": "100000000"])
            context.write(wrapOutboundOut(.head(head)), promise: nil)
            send(context)
        }

        private func send(_ context: ChannelHandlerContext) {
            let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
            context.writeAndFlush(wrapOutboundOut(.body(.byteBuffer(Self.piece)))).whenSuccess {
                let (sender, context) = bound.value
                sender.taken.count.add(Self.piece.readableBytes, ordering: .relaxed)
                sender.send(context)
            }
        }
    }

    private final class Box: Sendable {
        let count = Atomic(0)
    }

    @Test("reading stops while the disk is behind, and continues with the disk")
    func slow() {
        let taken = Box()
        withSimulation { simulation in
            simulation.captureExecutors()
            let network = SimulatedNetwork(simulation)
            let web = network.addHost("web") { _ in
                var settings = Settings()
                (settings.address, settings.port, settings.uploads) = ("0.0.0.0", 80, "/uploads")
                _ = try WebDaemon(settings, Logger(label: "web", factory: { _ in SwiftLogNoOpLogHandler() })).run()
            }
            simulation.advance(by: .seconds(1))
            web.disk.slow(.write, by: .seconds(1))
            RunLoopClientBootstrap(group: simulation.loop.nio)
                .channelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try channel.pipeline.syncOperations.addHTTPClientHandlers()
                        try channel.pipeline.syncOperations.addHandler(Sender(taken))
                    }
                }
                .connect(host: "web", port: 80)
                .whenFailure { Issue.record("\($0)") }
            var counts: [Int] = []
            for _ in 1...5 {
                simulation.advance(by: .seconds(10))
                let written = web.disk.contents(of: "/uploads/.upload-1")?.count ?? 0
                counts.append(written)
                // The daemon's memory, and the buffers of both sockets.
                let ahead = taken.count.load(ordering: .relaxed) - written
                #expect(ahead < 1_000_000, "\(ahead) bytes are ahead of the disk")
            }
            #expect(counts == counts.sorted() && Set(counts).count == counts.count, "\(counts)")
        }
    }
}
