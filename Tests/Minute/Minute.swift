import RunLoopHosts
import RunLoopKit
import RunLoopSimulation
import RunLoopUnix

/// A busy minute of a server and five clients, determined by its seed. `Minute 7` prints its events, one per line.
@main
enum Minute {
    static func main() {
        for line in trace(seed: CommandLine.arguments.dropFirst().first.flatMap { UInt64($0) } ?? 0) { print(line) }
    }

    static func trace(seed: UInt64) -> [String] {
        withSimulation(seed: seed, traced: true) { simulation in
            let network = SimulatedNetwork(simulation)
            network.link.latency = .milliseconds(50)
            network.link.jitter = .milliseconds(10)
            network.link.lossRate = 0.02
            let server = network.addHost("server", service: .init(watchdogPeriod: .seconds(30)), program: serve)
            server.install(program: "/bin/work", work)
            for number in 1...5 { network.addHost("client \(number)", program: ask) }
            simulation.advance(by: .seconds(10))
            server.crash()
            server.disk.install([1], at: "/etc/settings")
            simulation.advance(by: .seconds(10))
            server.start()
            simulation.advance(by: .seconds(10))
            server.disk.install([2], at: "/etc/settings")
            server.send(.hangUp)
            server.wallTime = server.wallTime + .seconds(3)
            network.partition([server])
            simulation.advance(by: .seconds(10))
            network.heal()
            server.disk.slow(.sync, by: .milliseconds(20))
            simulation.advance(by: .seconds(20))
            for escape in simulation.escapes { simulation.note(escape) }
            return simulation.trace
        }
    }

    /// Echoes received bytes, records their count, and has a child process look at it.
    @Sendable private static func serve(on loop: RunLoop) throws {
        let journal = Journal(on: loop)
        _ = try Listener(address: Endpoint("0.0.0.0", port: 7), on: loop) { _, descriptor, _ in
            let connection = Connection(adopting: descriptor, on: loop) { connection, bytes in
                journal.add(bytes.count)
                connection.write(bytes)
                return bytes.count
            }
            try? connection.start()
        }
        let watcher = try FileWatcher { _, events in journal.add(events.count) }
        try watcher.watch("/etc/")
        try loop.add(watcher, forMode: .common)
        let reload = try SignalSource(signal: .hangUp) { _ in journal.add(1) }
        try loop.add(reload, forMode: .common)
        let minute = loop.wallTime
        loop.add(WallTimer(at: minute + .seconds(25)) { _ in journal.add(25) }, forMode: .common)
        loop.task {
            for try await _ in loop.clock.ticks(every: .seconds(3)) {
                let child = try ChildProcess.spawn(
                    .path("/bin/work"), arguments: ["\(journal.count)"], standardOutput: .pipe, group: .newGroup)
                loop.perform(afterDelay: .seconds(1)) { try? child.stop(within: .seconds(1), on: loop) }
                journal.add(Int(child.processIdentifier))
                if case .exited(let code) = try await child.exit() { journal.add(Int(code)) }
            }
        }
    }

    /// Works for a random time, and handles SIGTERM at random.
    @Sendable private static func work(_ process: SimulatedProcess) throws {
        var random = process.loop.randomNumbers
        let end = try SignalSource(signal: .terminate) { _ in process.exit(Int32(process.arguments[0].utf8.count)) }
        if Bool.random(using: &random) { try process.loop.add(end, forMode: .common) } else { end.invalidate() }
        process.print("begun")
        process.loop.perform(afterDelay: .milliseconds(.random(in: 1...4_000, using: &random))) { process.exit(0) }
    }

    /// Sends a few bytes to the server and back, again and again.
    @Sendable private static func ask(on loop: RunLoop) {
        var retry = Connection.Retry()
        retry.maximumTries = nil
        Connection.connect(host: "server", port: 7, on: loop, timeout: .seconds(5), retry: retry) { connection, bytes in
            let answer = bytes.withUnsafeBufferPointer { Array($0) }
            loop.perform(afterDelay: .milliseconds(answer.count * 100)) { connection.write(answer) }
            return bytes.count
        } completion: { result in
            guard let connection = try? result.get() else { return }
            connection.closeHandler = { _, _ in ask(on: loop) }
            try? connection.start()
            var random = loop.randomNumbers
            connection.write([UInt8](repeating: 1, count: .random(in: 1...30, using: &random)))
        }
    }
}

/// The server's data on disk, written by a thread beside its loop.
private final class Journal {
    private(set) var count = 0
    private let thread: LoopThread

    init(on loop: RunLoop) {
        thread = LoopThread(name: "disk") { $0.add(CustomSource(), forMode: .default) }
        loop.add(Timer(timeInterval: .seconds(1), repeats: true) { [self] _ in save() }, forMode: .common)
    }

    func add(_ number: Int) {
        count += number
    }

    private func save() {
        let count = count
        thread.remote.perform { _ in
            let disk = Disk.current
            try? disk.remove("/data/new")
            guard let file = try? disk.open("/data/new", .readingAndWritingNew) else { return }
            try? file.write(Array("\(count)".utf8), at: 0)
            try? file.sync()
            try? disk.rename("/data/new", to: "/data/count")
            try? disk.syncDirectory(of: "/data/count")
        }
    }
}
