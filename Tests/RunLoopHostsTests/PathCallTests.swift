import Glibc
import RunLoopCore
import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@testable import RunLoopHosts
@_spi(Ports) @testable import RunLoopUnix

/// A system's answers to invalid paths and numbers, as text.
private struct PathBench {
    let system: any SystemCalls
    /// An existing empty directory, with a slash at its end.
    let root: String
    private(set) var answers: [String] = []

    init(_ system: any SystemCalls, in root: String) {
        (self.system, self.root) = (system, root)
    }

    private mutating func note(_ what: String, _ result: Int) {
        answers.append("\(what): \(result >= 0 ? "done" : String(cString: strerror(errno)))")
    }

    private static let accesses: [(String, Int32)] = [
        ("to read", O_RDONLY), ("to write", O_WRONLY), ("to create", O_WRONLY | O_CREAT | O_EXCL),
        ("to lock", O_RDWR | O_CREAT),
    ]

    /// Makes every call about each path; `file` is a file.
    mutating func run() {
        let made = system.open(root + "file", flags: O_WRONLY | O_CREAT | O_EXCL)
        note("make a file", Int(made))
        lengths(of: made)
        system.close(made)
        let paths = [
            "missing", "missing/", "missing/deeper/file", "file", "file/", "file/under", "file/under/it", "", "./file",
            "//file", "x/../file",
        ]
        for path in paths + ["."] {
            opens(path)
            watch(path)
            note("sync \(path)", Int(system.syncDirectory(root + path)))
            answers.append("exists \(path): \(system.exists(root + path))")
        }
        for path in ["missing", "missing/file", "file/under", "file/", ""] {
            note("remove \(path)", Int(system.removeFile(at: root + path)))
            note("rename \(path)", Int(system.rename(root + path, to: root + "other")))
            note("rename to \(path)/new", Int(system.rename(root + "file", to: root + path + "/new")))
        }
        for path in ["missing/socket", "file/socket", "file", "socket"] { bind(path) }
        note("connect to a file", connect("file"))
        note("connect to nothing", connect("missing/socket"))
        note("open nothing", Int(system.open("", flags: O_RDONLY)))
        note("remove the file", Int(system.removeFile(at: root + "file")))
        _ = system.removeFile(at: root + "socket")
        _ = system.removeFile(at: root + "other")
    }

    private mutating func opens(_ path: String) {
        for (purpose, flags) in Self.accesses {
            // A lock would create the file.
            if flags & O_CREAT != 0 && flags & O_EXCL == 0 && path == "missing" { continue }
            if flags & O_EXCL != 0 && path == "missing" { continue }
            let descriptor = system.open(root + path, flags: flags)
            note("open \(path) \(purpose)", Int(descriptor))
            guard descriptor >= 0 else { continue }
            withUnsafeTemporaryAllocation(byteCount: 10, alignment: 1) {
                note("read \(path)", system.read(descriptor, into: $0, at: 0))
                note("read before \(path)", system.read(descriptor, into: $0, at: -1))
            }
            system.close(descriptor)
        }
    }

    private mutating func lengths(of descriptor: Int32) {
        for length in [-1, Int.min, 5] { note("truncate to \(length)", Int(system.truncate(descriptor, to: length))) }
        for offset in [-1, Int.min, 3] {
            let written = [1, 2, 3].withUnsafeBytes { system.write(descriptor, $0, at: offset) }
            note("write at \(offset)", written)
        }
    }

    private mutating func watch(_ path: String) {
        let descriptor = system.openFileWatcher()
        note("watch \(path)", Int(system.watch(root + path, with: descriptor, for: UInt32(IN_CREATE))))
        system.close(descriptor)
    }

    private mutating func bind(_ path: String) {
        let socket = system.socket(AF_UNIX)
        note("bind \(path)", Int(system.bind(socket, to: try! Endpoint(path: root + path))))
        system.close(socket)
    }

    private func connect(_ path: String) -> Int {
        let socket = system.socket(AF_UNIX)
        defer { system.close(socket) }
        let status = system.connect(socket, to: try! Endpoint(path: root + path))
        let reason = errno
        defer { errno = reason }
        return Int(status)
    }
}

@Suite("Paths of simulated hosts, call by call")
struct PathCallTests {
    @Test("paths that lead nowhere, and lengths that cannot be, are answered as the system answers them")
    func same() {
        let directory = "/tmp/rlk-paths-\(getpid())/"
        mkdir(directory, 0o700)
        defer { rmdir(directory) }
        var real = PathBench(RealSystem.shared, in: directory)
        real.run()
        withSimulation { simulation in
            let network = SimulatedNetwork(simulation)
            var simulated = PathBench(network.system, in: "/data/")
            simulated.run()
            for (real, simulated) in zip(real.answers, simulated.answers) { #expect(simulated == real) }
            #expect(real.answers.count == simulated.answers.count && real.answers.count > 100)
        }
    }

    @Test("a directory is there when a test has made it, or has put something in it, also after a crash")
    func directories() {
        withSimulation { simulation in
            let network = SimulatedNetwork(simulation)
            let log = Log<String>()
            let host = network.addHost("host", mayFail: true) { _ in
                let disk = Disk.current
                log("\(["/srv/own/x", "/opt/a/b/", "/usr/share/tool", "/nowhere"].map { disk.exists($0) })")
                _ = try disk.open("/srv/own/state", .readingAndWritingLocked)
                _ = try disk.open("/srv/others/state", .readingAndWritingLocked)
            }
            host.disk.installDirectory(at: "/srv/own/x")
            host.disk.install([1], at: "/opt/a/b/c")
            host.install(program: "/usr/share/tool/run") { _ in }
            simulation.advance(by: .seconds(1))
            host.crash()
            host.start()
            simulation.advance(by: .seconds(1))
            #expect(log.entries == Array(repeating: "[true, true, true, false]", count: 2))
            #expect("\(host.ending!)".contains("/srv/others/state"))
            #expect(host.disk.paths == ["/opt/a/b/c", "/srv/own/state"])
        }
    }

    @Test("localhost and the wildcard lead to the host itself")
    func loopback() throws {
        let real = try #require(try? HostResolver.find("localhost").get())
        withSimulation { simulation in
            let network = SimulatedNetwork(simulation)
            network.addHost("other") { loop in
                _ = try Listener(address: Endpoint("127.0.0.1", port: 7), on: loop) { _, _, _ in
                    Issue.record("another host")
                }
            }
            let log = Log<String>()
            let own = try! Listener(address: Endpoint("0.0.0.0", port: 7), on: simulation.loop) { _, descriptor, peer in
                log("\(peer)".hasPrefix("127.0.0.1:") ? "own" : "\(peer)")
                network.system.close(descriptor)
            }
            for host in ["localhost", "LOCALHOST", "127.0.0.1", "0.0.0.0"] {
                Connection.connect(host: host, port: 7, on: simulation.loop) { result in
                    if case .failure(let error) = result { log("\(error)") }
                }
            }
            HostResolver.resolve("localhost", port: 0, on: simulation.loop) { result in
                let found = try! result.get().map { "\($0)" }
                #expect(found.contains("127.0.0.1:0") && Set(real.map { "\($0)" }).isSubset(of: found))
            }
            simulation.advance(by: .seconds(1))
            #expect(log.entries == Array(repeating: "own", count: 4))
            own.close()
        }
    }
}
