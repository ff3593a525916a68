import Logging
import RunLoopHosts
import RunLoopKit
import RunLoopSimulation
import RunLoopTesting
import RunLoopUnix
import Testing
import WebServer

@Suite("The start of the daemon, simulated")
struct StartTests {
    /// A log whose line "listening on" takes a second to write, in which the other threads go on.
    private struct SlowLog: LogHandler {
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.info

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            if event.message.description.hasPrefix("listening on") { RunLoop.current.run(for: .seconds(1)) }
        }
    }

    @Test("a client that is there before the daemon finds it ready when it is first answered")
    func firstAnswer() {
        withSimulation { simulation in
            simulation.captureExecutors()
            let network = SimulatedNetwork(simulation)
            network.addHost("web") { _ in
                var settings = Settings()
                (settings.address, settings.port, settings.uploads) = ("0.0.0.0", 80, "/uploads")
                _ = try WebDaemon(settings, Logger(label: "web", factory: { _ in SlowLog() })).run()
            }
            var retry = Connection.Retry()
            retry.firstDelay = .milliseconds(1)
            retry.maximumDelay = .milliseconds(10)
            var answer = ""
            Connection.connect(
                host: "web", port: 80, on: simulation.loop, retry: retry,
                receive: { _, bytes in
                    answer += bytes.withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) }
                    return bytes.count
                },
                completion: { result in
                    guard let connection = try? result.get(), (try? connection.start()) != nil else { return }
                    connection.write("GET /health HTTP/1.1\r\nhost: web\r\n\r\n")
                })
            simulation.advance(by: .milliseconds(900))
            #expect(answer.hasPrefix("HTTP/1.1 200 OK\r\n"), "\(answer)")
        }
    }
}
