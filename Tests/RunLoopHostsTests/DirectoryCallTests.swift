import Glibc
import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@testable import RunLoopHosts
@_spi(Ports) @testable import RunLoopUnix

/// A user of both systems, and the groups of the user.
private let users =
    geteuid() == 0
    ? [
        ChildProcess.User(0, group: 0), ChildProcess.User(65_534, group: 65_534),
        ChildProcess.User(65_533, group: 65_533, supplementaryGroups: [65_534]),
    ] : [ChildProcess.User(geteuid(), group: getegid())]

/// Random calls on the files and directories below one directory, and a system's answers as text.
private struct DirectoryBench {
    private(set) var system: any SystemCalls
    /// Returns the system as one of the users has it; `nil` to stay the present user.
    private let become: ((Int) -> any SystemCalls)?
    /// An existing empty directory, with a slash at its end.
    let root: String
    private var open: [(descriptor: Int32, system: any SystemCalls)] = []
    private var random: SeededGenerator

    init(_ system: any SystemCalls, in root: String, seed: UInt64, as become: ((Int) -> any SystemCalls)? = nil) {
        (self.system, self.root, self.become) = (system, root, become)
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
        guard let become else { return call() }
        let user = Int.random(in: users.indices, using: &random)
        system = become(user)
        return "\(user) \(Int.random(in: 0..<4, using: &random) == 0 ? rightsCall() : call())"
    }

    /// Makes a call about rights.
    private mutating func rightsCall() -> String {
        let path = path()
        let permissions = [0, 0o100, 0o200, 0o400, 0o700, 0o711, 0o750, 0o070, 0o007, 0o755, 0o777, 0o1777, 0o1770]
        if Int.random(in: 0..<5, using: &random) == 0 {
            let watcher = system.openFileWatcher()
            defer { system.close(watcher) }
            return "watch \(path): \(word(system.watch(root + path, with: watcher, for: UInt32(IN_CREATE))))"
        }
        let chosen = permissions.randomElement(using: &random)!
        if !open.isEmpty, Bool.random(using: &random) {
            // A descriptor belongs to the process that has opened it.
            let (descriptor, owner) = open.randomElement(using: &random)!
            guard owner === system else { return "none" }
            return "allow \(chosen) to an open file: \(word(system.setPermissions(UInt32(chosen), of: descriptor)))"
        }
        return "allow \(chosen) to \(path): \(word(system.setPermissions(UInt32(chosen), at: root + path)))"
    }

    private mutating func call() -> String {
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
        case 11 where !open.isEmpty:
            let (descriptor, system) = open.remove(at: Int.random(in: 0..<open.count, using: &random))
            return use(descriptor, system)
        default: return openFile(path)
        }
    }

    private mutating func openFile(_ path: String) -> String {
        // In a sticky directory `fs.protected_regular` may forbid even root to create an existing file.
        let last = become == nil ? O_RDWR | O_CREAT : O_RDWR
        let flags = [O_RDONLY, O_WRONLY, O_WRONLY | O_CREAT | O_EXCL, last].randomElement(using: &random)!
        let descriptor = system.open(root + path, flags: flags)
        let answer = "open \(path) with \(flags): \(word(descriptor))"
        if descriptor >= 0 { open.append((descriptor, system)) }
        return answer
    }

    /// Tries the operations on a descriptor of a file or of a directory, and closes it.
    private func use(_ descriptor: Int32, _ system: any SystemCalls) -> String {
        defer { system.close(descriptor) }
        let written = Int32([1, 2].withUnsafeBytes { system.write(descriptor, $0, at: 0) })
        var answers = [word(written), word(system.truncate(descriptor, to: 1)), word(system.sync(descriptor))]
        withUnsafeTemporaryAllocation(byteCount: 10, alignment: 1) {
            answers.append(word(Int32(system.read(descriptor, into: $0, at: 0))))
        }
        answers += [word(system.lock(descriptor)), word(system.truncate(descriptor, to: 0))]
        return "use: \(answers)"
    }

    /// Returns the contents of the directory and its directories.
    func tree(_ directory: String = "") -> [String] {
        (system.contentsOfDirectory(root + directory) ?? []).sorted().flatMap { name in
            [directory + name] + tree("\(directory)\(name)/")
        }
    }

    mutating func end() {
        for (descriptor, system) in open { system.close(descriptor) }
    }
}

@Suite("Directories of simulated hosts, call by call")
struct DirectoryCallTests {
    private static let seeds = 0..<60 as Range<UInt64>

    /// Returns the answers to random calls, and then the contents.
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

    #if arch(x86_64)
    private static let (setGroups, setUser, setGroup) = (116, 117, 119)
    #else
    private static let (setGroups, setUser, setGroup) = (159, 147, 149)
    #endif

    /// Makes the calling thread run as a user, and leaves the process's other threads as they are.
    ///
    /// - Parameter saved: the user that the thread may become again.
    private static func become(_ user: ChildProcess.User, saved: UInt32) {
        typealias Call = @convention(c) (Int, Int, Int, Int) -> Int
        let call = unsafeBitCast(dlsym(nil, "syscall"), to: Call.self)
        /// Makes a call of the kernel, which affects one thread; the C library's calls affect all.
        func perform(_ number: Int, _ one: Int, _ other: Int = 0, _ third: Int = 0) {
            precondition(call(number, one, other, third) == 0, "errno \(errno)")
        }
        perform(Self.setUser, Int(saved), Int(saved), Int(saved))
        user.supplementaryGroups.withUnsafeBufferPointer {
            perform(Self.setGroups, $0.count, Int(bitPattern: $0.baseAddress))
        }
        perform(Self.setGroup, Int(user.group), Int(user.group), -1)
        perform(Self.setUser, Int(user.identifier), Int(user.identifier), Int(saved))
    }

    /// Returns the answers of the system to random calls of several users, and then the contents.
    private static func realAnswers(in root: String, seed: UInt64) -> [String] {
        let own = geteuid()
        let answers = Log<String>()
        let thread = PlainThread {
            // Each user has a system of its own, as on a host.
            let systems = users.map { _ in RealSystem() }
            var bench = DirectoryBench(RealSystem.shared, in: root, seed: seed) { user in
                if own == 0 { become(users[user], saved: own) }
                return systems[user]
            }
            for _ in 0..<200 { answers.append(bench.step()) }
            if own == 0 { become(users[0], saved: own) }
            bench.end()
            for path in bench.tree() { answers.append(path) }
        }
        thread.join()
        return answers.entries
    }

    @Test("the rights of users are those that the system gives them, in random calls of several")
    func rights() {
        var words: Set<String> = []
        for seed in Self.seeds {
            let directory = TemporaryDirectory()
            chmod(directory.path, 0o777)
            let real = Self.realAnswers(in: directory.path + "/", seed: seed)
            let simulated = withSimulation(seed: seed) { simulation in
                let network = SimulatedNetwork(simulation)
                network.test.disk.installDirectory(at: "/data", owner: users[0], permissions: 0o777)
                let systems = users.map { network.makeSystem(as: $0) }
                var bench = DirectoryBench(network.system, in: "/data/", seed: seed) { systems[$0] }
                let answers = (0..<200).map { _ in bench.step() }
                bench.end()
                return answers + DirectoryBench(systems[0], in: "/data/", seed: seed).tree()
            }
            for (step, (one, other)) in zip(real, simulated).enumerated() where one != other {
                Issue.record("seed \(seed), step \(step): the system says \(one), the simulated one \(other)")
                return
            }
            #expect(real.count == simulated.count)
            words.formUnion(real.compactMap { $0.split(separator: ": ").last.map(String.init) })
        }
        #expect(words.contains(String(cString: strerror(EACCES))))
        #expect(words.contains(String(cString: strerror(EPERM))) || geteuid() != 0)
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
            let other = system.socket(AF_UNIX)
            #expect(system.bind(other, to: try! Endpoint(path: "/socket")) == 0)
            #expect(system.contentsOfDirectory("/")?.contains("socket") == true)
            system.close(other)
        }
    }
}
