import Logging
import RunLoopHosts
import RunLoopKit
import RunLoopSimulation
import RunLoopTesting
import RunLoopUnix
import Synchronization
import Testing
import WebServer

@Suite("Uploads to a slow disk, simulated")
struct BackPressureTests {
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
            simulation.loop.task { [loop = simulation.loop] in
                let peer = try await Connection.connect(host: "web", port: 80, on: loop)
                try await peer.write("PUT /uploads/a HTTP/1.1\r\nhost: web\r\ncontent-length: 100000000\r\n\r\n")
                while true {
                    try await peer.write([UInt8](repeating: 1, count: 10_000))
                    try await peer.sent()
                    taken.count.add(10_000, ordering: .relaxed)
                }
            }
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
