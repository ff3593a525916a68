import Glibc
import TestSupport
import Testing

@_spi(Ports) @testable import RunLoopUnix

@Suite("Starts at one path")
struct PathClaimTests {
    /// The number of starts of all processes together, for each kind of socket.
    static let starts = amount(of: "PATH_STARTS", usually: 1_000)

    @Test(
        "of several processes that start at one path at once, one has it and is reached",
        arguments: [false, true])
    func oneOwner(hasDatagrams: Bool) async {
        let directory = TemporaryDirectory()
        for count in 2...6 {
            let place = directory["\(count)"]
            _ = SharedCounters(place)
            await withTaskGroup { processes in
                for _ in 0..<count {
                    processes.addTask {
                        await start(Self.starts / 5 / count, of: count, at: place, hasDatagrams: hasDatagrams)
                    }
                }
            }
        }
    }

    /// Starts in a process of its own.
    private func start(_ rounds: Int, of count: Int, at place: String, hasDatagrams: Bool) async {
        await #expect(processExitsWith: .success) { [rounds, count, place, hasDatagrams] in
            try Self.start(rounds, of: count, at: place, hasDatagrams)
        }
    }

    /// Starts again and again, at the same time as the other processes.
    private static func start(_ rounds: Int, of count: Int, at place: String, _ hasDatagrams: Bool) throws {
        let (system, counters) = (RealSystem.shared, SharedCounters(place))
        let path = place + ".socket"
        let address = try Endpoint(path: path)
        func open() throws(SystemError) -> Int32 {
            try hasDatagrams
                ? system.openDatagramSocket(at: address, to: nil, .init()) : system.openListener(address, .init())
        }
        for round in 0..<rounds {
            counters.meet(count)
            var own: Int32?
            do {
                own = try open()
                counters.addHolder()
            } catch {
                precondition(error.errno == EADDRINUSE, "\(error)")
            }
            counters.meet(count)
            precondition(counters.holders == 1, "round \(round): \(counters.holders) of \(count) have the path")
            let client = hasDatagrams ? system.datagramSocket(AF_UNIX) : system.socket(AF_UNIX)
            precondition(system.connect(client, to: address) == 0, "round \(round): nobody answers")
            system.close(client)
            counters.meet(count)
            guard let own else { continue }
            // Without a file, with a stale one, or with one whose number is free for the next.
            if round % 3 == 0 { precondition(system.removeFile(at: path) == 0) }
            system.close(own)
            precondition(counters.takeHolders() == 1)
        }
        counters.meet(count)
    }

    @Test("a start that was killed leaves nothing that keeps the next one from the path")
    func killed() throws {
        let directory = TemporaryDirectory()
        directory.write("", to: "socket.claim")
        let listener = try RealSystem.shared.openListener(Endpoint(path: directory["socket"]), .init())
        close(listener)
        #expect(access(directory["socket.claim"], F_OK) != 0)
    }
}
