import ExampleTestSupport
import Glibc
import RunLoopKit
import RunLoopUnix
import Testing

@Suite("A daemon that is killed", .serialized)
struct KillTests {
    /// The number of kills; `make kill-ttlstore` sets `KILLS=100`.
    private static let kills = amount(of: "KILLS", usually: 3)

    /// The keys set by one client: number by number to its keys in turn.
    private struct Writer {
        static let keys = 50
        let client: Client
        let name: String
        var sent: Int
        /// The last acknowledged number.
        var acknowledged: Int?

        mutating func send(_ count: Int) {
            client.send((0..<count).map { "SET \(name):\((sent + $0) % Writer.keys) \(sent + $0)\r\n" }.joined())
            sent += count
        }

        /// - Returns: `false` at the end.
        mutating func receive(_ first: Int, _ count: Int) -> Bool {
            let replies = client.receive(5 * count).count / 5
            if replies > 0 { acknowledged = first + replies - 1 }
            return replies == count
        }
    }

    @Test(
        "acknowledged changes survive a kill of the daemon at any time", arguments: ["always", "everysec", "no"],
        ["1", "3"])
    func kills(sync: String, loops: String) throws {
        // The log is rewritten again and again, and the process is killed during that too.
        let arguments = ["--log-rewrite-size", "20kb", "--loops", loops]
        unlink(StoreUnderTest.changes(of: "kill\(sync)"))
        defer { unlink(StoreUnderTest.changes(of: "kill\(sync)")) }
        var next = 0
        for round in 0..<Self.kills {
            let store = try StoreUnderTest(name: "kill\(sync)", arguments: arguments, logs: sync)
            var writers = try (0..<4).map { Writer(client: try Client(store.path), name: "c\($0)", sent: next) }
            let first = next
            let batches = Int.random(in: 5...(Self.kills > 10 ? 200 : 40))
            for batch in 0..<batches {
                let start = writers[0].sent
                for index in writers.indices { writers[index].send(10) }
                if batch == batches - 1 {
                    usleep(.random(in: 0...2_000))
                    try store.kill(.kill)
                }
                for index in writers.indices { _ = writers[index].receive(start, 10) }
            }
            #expect(try store.wait() == .signalled(.kill, coreDumped: false))
            next = writers[0].sent
            for writer in writers { writer.client.close() }
            try check(writers, since: first, sync, round, arguments)
        }
    }

    private func check(
        _ writers: [Writer], since first: Int, _ sync: String, _ round: Int, _ arguments: [String]
    ) throws {
        let store = try StoreUnderTest(name: "kill\(sync)", arguments: arguments, logs: sync)
        let reader = try Client(store.path)
        for writer in writers {
            guard let last = writer.acknowledged else { continue }
            for number in max(first, last - Writer.keys + 1)...last {
                reader.send("GET \(writer.name):\(number % Writer.keys)\r\n")
                let reply = reader.receive() ?? ""
                let value = reply.split(separator: "\r\n").last.flatMap { Int($0) } ?? -1
                // A later value that was not acknowledged is possible, too.
                #expect(value >= number && value < writer.sent, "\(number) in round \(round): \(reply)")
            }
        }
        reader.close()
        try store.kill(.kill)
        _ = try store.wait()
    }
}
