import Glibc
import RunLoopHosts
import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@testable import RunLoopUnix

/// Random calls on the files and directories below one directory, and a system's answers as text.
private struct DirectoryBench {
    let system: any SystemCalls
    /// A directory that is there and empty, with a slash at its end.
    let root: String
    private var open: [Int32] = []
    private var random: SeededGenerator

    init(_ system: any SystemCalls, in root: String, seed: UInt64) {
        (self.system, self.root) = (system, root)
        random = SeededGenerator(seed: seed)
    }

    private func word(_ result: Int32) -> String { result >= 0 ? "done" : String(cString: strerror(errno)) }

    private static let names = ["a", "b", "c"]

    /// A path of up to three steps, which does not lead out of the directory.
    private mutating func path() -> String {
        var steps: [String] = []
        for depth in 0..<Int.random(in: 1...3, using: &random) {
            let isOdd = depth > 0 && Int.random(in: 0..<8, using: &random) == 0
            steps.append((isOdd ? [".", "..", ""] : Self.names).randomElement(using: &random)!)
        }
        return steps.joined(separator: "/") + (Int.random(in: 0..<8, using: &random) == 0 ? "/" : "")
    }

    mutating func step() -> String {
        let path = path()
        let whole = root + path
        switch Int.random(in: 0..<14, using: &random) {
        case 0...2: return "make \(path): \(word(system.createDirectory(whole)))"
        case 3: return "remove directory \(path): \(word(system.removeDirectory(whole)))"
        case 4: return "remove \(path): \(word(system.removeFile(at: whole)))"
        case 5...7:
            let other = self.path()
            return "rename \(path) to \(other): \(word(system.rename(whole, to: root + other)))"
        case 8: return "list \(path): \(system.contentsOfDirectory(whole)?.sorted().description ?? word(-1))"
        case 9: return "sync \(path): \(word(system.syncDirectory(whole)))"
        case 10: return "exists \(path): \(system.exists(whole))"
        case 11 where !open.isEmpty: return use(open.remove(at: Int.random(in: 0..<open.count, using: &random)))
        default: return openFile(path)
        }
    }

    private mutating func openFile(_ path: String) -> String {
        let flags = [O_RDONLY, O_WRONLY, O_WRONLY | O_CREAT | O_EXCL, O_RDWR | O_CREAT].randomElement(using: &random)!
        let descriptor = system.open(root + path, flags: flags)
        let answer = "open \(path) with \(flags): \(word(descriptor))"
        if descriptor >= 0 { open.append(descriptor) }
        return answer
    }

    /// Asks for what a descriptor of a file or of a directory allows, and closes it.
    private mutating func use(_ descriptor: Int32) -> String {
        defer { system.close(descriptor) }
        let written = Int32([1, 2].withUnsafeBytes { system.write(descriptor, $0, at: 0) })
        var answers = [word(written), word(system.truncate(descriptor, to: 1)), word(system.sync(descriptor))]
        withUnsafeTemporaryAllocation(byteCount: 10, alignment: 1) {
            answers.append(word(Int32(system.read(descriptor, into: $0, at: 0))))
        }
        answers += [word(system.lock(descriptor)), word(system.truncate(descriptor, to: 0))]
        return "use: \(answers)"
    }

    /// What lies below the directory.
    func tree(_ directory: String = "") -> [String] {
        (system.contentsOfDirectory(root + directory) ?? []).sorted().flatMap { name in
            [directory + name] + tree("\(directory)\(name)/")
        }
    }

    mutating func end() {
        for descriptor in open { system.close(descriptor) }
    }
}

@Suite("Directories of simulated hosts, call by call")
struct DirectoryCallTests {
    private static let seeds = 0..<60 as Range<UInt64>

    /// The answers to random calls, and then what is there.
    private static func answers(_ system: any SystemCalls, in root: String, seed: UInt64) -> [String] {
        var bench = DirectoryBench(system, in: root, seed: seed)
        defer { bench.end() }
        return (0..<150).map { _ in bench.step() } + bench.tree()
    }

    @Test("random calls on directories are answered as the system answers them")
    func same() {
        var words: Set<String> = []
        for seed in Self.seeds {
            let directory = TemporaryDirectory()
            let real = Self.answers(RealSystem.shared, in: directory.path + "/", seed: seed)
            let simulated = withSimulation(seed: seed) { simulation in
                Self.answers(SimulatedNetwork(simulation).system, in: "/data/", seed: seed)
            }
            for (step, (one, other)) in zip(real, simulated).enumerated() where one != other {
                Issue.record("seed \(seed), step \(step): the system says \(one), the simulated one \(other)")
                return
            }
            #expect(real.count == simulated.count)
            words.formUnion(real.compactMap { $0.split(separator: ": ").last.map(String.init) })
        }
        for reason in [ENOENT, EEXIST, ENOTDIR, EISDIR, ENOTEMPTY, EINVAL, EBUSY] {
            #expect(words.contains(String(cString: strerror(reason))), "\(reason) came up")
        }
    }

    @Test("a name that is too long is refused, and the root stays where it is")
    func corners() {
        func answers(_ system: any SystemCalls, in root: String) -> [String] {
            func word(_ result: Int32) -> String { result >= 0 ? "done" : String(cString: strerror(errno)) }
            let long = root + String(repeating: "n", count: 256)
            return [
                word(system.createDirectory(long)), word(system.open(long, flags: O_RDONLY)),
                word(system.createDirectory("\(long)/a")), word(system.createDirectory("/")),
                word(system.removeDirectory("/")), word(system.removeFile(at: "/")), word(system.rename("/", to: long)),
                word(system.rename("/", to: root + "a")), word(system.rename(root, to: "/")),
                word(system.createDirectory("")), word(system.removeDirectory("")),
                system.contentsOfDirectory("") == nil ? word(-1) : "",
            ]
        }
        let directory = TemporaryDirectory()
        let real = answers(RealSystem.shared, in: directory.path + "/")
        withSimulation { simulation in
            #expect(answers(SimulatedNetwork(simulation).system, in: "/data/") == real)
        }
    }

    @Test("a directory that has a socket is not empty, and stays where it is")
    func sockets() throws {
        withSimulation { simulation in
            let system = SimulatedNetwork(simulation).system
            #expect(system.createDirectory("/run/daemon") == 0)
            let socket = system.socket(AF_UNIX)
            #expect(system.bind(socket, to: try! Endpoint(path: "/run/daemon/socket")) == 0)
            #expect(system.contentsOfDirectory("/run/daemon") == ["socket"])
            #expect(system.removeDirectory("/run/daemon") == -1 && errno == ENOTEMPTY)
            for path in ["/run/daemon", "/run/"] {
                #expect(system.rename(path, to: "/opt/other") == -1 && errno == EBUSY)
            }
            #expect(system.createDirectory("/run/daemon/socket") == -1 && errno == EEXIST)
            #expect(system.removeFile(at: "/run/daemon/socket") == 0 && system.removeDirectory("/run/daemon") == 0)
            system.close(socket)
        }
    }
}
