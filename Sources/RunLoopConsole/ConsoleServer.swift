internal import Glibc
internal import RunLoopKit
internal import RunLoopUnix

/// The clients of a console, and the loops that they see. On the console's thread.
final class ConsoleServer {
    private let loop: RunLoop
    private let interval: Duration
    private var listener: Listener?
    private var clients: [RunLoopUnix.Connection] = []
    private var watched: [WatchedLoop] = []
    /// The timer that asks the loops at each interval, while there are clients.
    private var timer: RunLoopKit.Timer?
    private var number = 0

    init(at address: Endpoint, interval: Duration, on loop: RunLoop) throws {
        (self.loop, self.interval) = (loop, interval)
        // The listener's handler keeps the server until the loop ends.
        listener = try Listener(address: address, on: loop) { [self] _, descriptor, _ in welcome(descriptor) }
    }

    func add(_ remote: RunLoop.Remote, named name: String, recordsAlways: Bool) {
        let new = WatchedLoop(remote, named: name, recordsAlways: recordsAlways, interval: interval, on: loop)
        watched.append(new)
        if timer != nil { new.ask() }
    }

    // MARK: Clients

    private func welcome(_ descriptor: Int32) {
        let client = Connection(adopting: descriptor, on: loop) { _, bytes in bytes.count }
        // Weak, because the end of the loop closes the connection, too.
        client.closeHandler = { [weak self] client, _ in self?.takeLeave(of: client) }
        guard (try? client.start()) != nil else { return }
        clients.append(client)
        guard timer == nil else { return }
        let timer = Timer(fire: loop.now, interval: interval, repeats: true) { [unowned self] _ in look() }
        timer.name = "look"
        loop.add(timer, forMode: .default)
        self.timer = timer
    }

    private func takeLeave(of client: RunLoopUnix.Connection) {
        clients.removeAll { $0 === client }
        guard clients.isEmpty else { return }
        timer?.invalidate()
        timer = nil
        for one in watched { one.rest() }
    }

    // MARK: Snapshots

    private func look() {
        for one in watched { one.ask() }
        // Most loops answer before then.
        loop.perform(afterDelay: interval / 10) { [unowned self] in send() }
    }

    private func send() {
        watched.removeAll(where: \.hasEnded)
        let ready = clients.filter { $0.pendingOutput == 0 }
        guard timer != nil else { return }
        number += 1
        let waits = TaskWaits(watched.map { ($0.name, $0.tasks) })
        let loops = watched.map { one in
            var loop = one.sample()
            waits.complete(&loop.tasks)
            return loop
        }
        let snapshot = Console.Snapshot(
            number: number, process: Int(getpid()), program: Self.program, loops: loops, cycles: waits.cycles)
        guard !ready.isEmpty else { return }
        let line = snapshot.json
        for client in ready { client.write(line) }
    }

    private static let program = CommandLine.arguments.first?.split(separator: "/").last.map(String.init) ?? ""
}
