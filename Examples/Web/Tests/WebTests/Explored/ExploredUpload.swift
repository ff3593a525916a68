import Logging
import RunLoopHTTP
import RunLoopHosts
import RunLoopKit
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
    /// The client that may leave.
    private var client: HTTPClient?

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
            simulation.loop.perform { [self] in client?.close() }
        }
        for number in 1...2 { simulation.loop.task { [self] in await upload(from: number) } }
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

    /// Uploads files one after another, whatever becomes of each. They are sent in pieces, between which events may happen.
    private func upload(from number: Int) async {
        let loop = simulation.loop
        var options = HTTPClient.Options()
        options.answerTime = .seconds(1)
        for file in 1...3 {
            let (name, content) = ("c\(number)-\(file)", [UInt8](repeating: UInt8(16 * number + file), count: 3_000))
            let client = HTTPClient(on: loop, options: options)
            if number == 1 { self.client = client }
            let body = HTTPClient.RequestBody.stream(length: content.count) { writer in
                for start in stride(from: 0, to: content.count, by: 1_000) {
                    try await writer.write(content[start..<start + 1_000])
                    try await loop.clock.sleep(for: .milliseconds(20))
                }
            }
            let answer = try? await client.send(HTTPRequest(.put, "http://10.1.0.1/uploads/\(name)"), body: body)
            if answer?.status == .created { stored[name] = content }
            client.close()
            try? await loop.clock.sleep(for: .milliseconds(200))
        }
    }
}
