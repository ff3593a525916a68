import Glibc
import RunLoopHosts
import RunLoopKit
import RunLoopSimulation
import RunLoopUnix
import Testing
import WebhooksTestSupport

@testable import Webhooks

@Suite("The log of hooks")
struct LogTests {
    private static func hook(_ number: Int, body: String = "{}") -> Hook {
        Hook(number: number, destination: "a", key: "k\(number)", date: .init(secondsSince1970: 0), body: body)
    }

    private static func store(_ numbers: Int..., in log: HookLog) throws {
        for number in numbers { try log.append(LogLine(number: number, hook: hook(number))) }
    }

    @Test("a file that ends anywhere has the whole lines before that")
    func torn() throws {
        let directory = TemporaryDirectory()
        let whole = directory["whole"]
        var ends: [Int] = []
        do {
            let log = try HookLog(at: whole)
            for number in 1...3 {
                try Self.store(number, in: log)
                ends.append(log.length)
            }
        }
        let bytes = try Disk.current.open(whole, .reading).contents()
        for length in stride(from: 0, through: bytes.count, by: 5) {
            // A hole with zeros behind it, as a crash may leave it, is no line either.
            for tail in [[], [UInt8](repeating: 0, count: 40)] {
                let path = directory["torn"]
                do {
                    let file = try Disk.current.open(path, .readingAndWritingLocked)
                    try file.truncate(to: 0)
                    try file.write(Array(bytes.prefix(length)) + tail, at: 0)
                }
                let log = try HookLog(at: path)
                let count = ends.filter { $0 <= length }.count
                #expect(log.hooks.keys.sorted() == Array((1...3).prefix(count)) && log.lastNumber == count)
                try Self.store(9, in: log)
                #expect(log.length > (count > 0 ? ends[count - 1] : 0))
            }
            #expect(try HookLog(at: directory["torn"]).hooks[9]?.key == "k9")
        }
    }

    @Test("a changed byte ends the file, although the line is JSON")
    func damaged() throws {
        let directory = TemporaryDirectory()
        do { try Self.store(1, 2, 3, in: HookLog(at: directory["log"])) }
        let bytes = try Disk.current.open(directory["log"], .reading).contents()
        let offset = try #require(bytes.firstRange(of: Array("k2".utf8))).lowerBound
        try Disk.current.open(directory["log"], .writing).write(Array("k4".utf8), at: offset)
        #expect(try HookLog(at: directory["log"]).hooks.keys.sorted() == [1])
    }

    @Test("the file does not grow for ever, and keeps what is not delivered")
    func compaction() throws {
        let directory = TemporaryDirectory()
        let log = try HookLog(at: directory["log"])
        let body = "\"\(String(repeating: "x", count: 1_000))\""
        try Self.store(1, in: log)
        for number in 2...2_000 {
            try log.append(LogLine(number: number, hook: Self.hook(number, body: body)))
            try log.append(LogLine(number: number))
            #expect(log.length < 300 * 1024)
        }
        #expect(log.hooks.keys.sorted() == [1])
        #expect(throws: SystemError.self, "the new file is locked, too") { try HookLog(at: directory["log"]) }
    }

    @Test("hooks that a full or broken disk refuses stay away after a crash, and the others stay", arguments: 0..<40)
    func refused(seed: Int) {
        let (stored, refused, found) = (Log<Int>(), Log<Int>(), Log<[Int]>())
        withSimulation(seed: UInt64(seed)) { simulation in
            let network = SimulatedNetwork(simulation)
            let host = network.addHost("host") { loop in
                let log = try HookLog(at: "/log")
                found.append(log.hooks.keys.sorted())
                for number in found.entries.count * 100..<found.entries.count * 100 + 30 {
                    loop.perform(afterDelay: .seconds(number % 100)) {
                        do {
                            try Self.store(number, in: log)
                            stored.append(number)
                        } catch is HookLog.NotStored {
                            refused.append(number)
                        } catch {}
                    }
                }
            }
            let disk = host.disk
            for start in 0..<3 {
                simulation.advance(by: .milliseconds(4_500))
                disk.capacity = 700 + 2_500 * start
                simulation.advance(by: .seconds(3))
                disk.fail(.sync, errno: EIO)
                simulation.advance(by: .seconds(3))
                disk.fail(.sync, errno: nil)
                simulation.advance(by: .seconds(3))
                disk.capacity = nil
                simulation.advance(by: .seconds(seed % 4))
                host.crash()
                host.start()
            }
            simulation.advance(by: .seconds(1))
        }
        let last = found.entries.last ?? []
        #expect(found.entries.count == 4 && !stored.entries.isEmpty && !refused.entries.isEmpty)
        let missing = stored.entries.filter { $0 < 400 && !last.contains($0) }
        #expect(missing.isEmpty && refused.entries.filter(last.contains).isEmpty, "missing \(missing), found \(last)")
    }
}
