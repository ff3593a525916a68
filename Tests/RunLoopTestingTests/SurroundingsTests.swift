import Foundation
import Glibc
import RunLoopHosts
import RunLoopKit
import RunLoopSimulation
import RunLoopTesting
import RunLoopUnix
import TestSupport
import Testing

/// Returns the value of a variable from the C library.
private func variable(_ name: String) -> String { getenv(name).map { String(cString: $0) } ?? "-" }

/// Returns the value of a variable from `secure_getenv`, which Swift does not import.
private func secureVariable(_ name: String) -> String {
    typealias Function = @convention(c) (UnsafePointer<CChar>) -> UnsafeMutablePointer<CChar>?
    let function = unsafeBitCast(dlsym(nil, "secure_getenv"), to: Function.self)
    return function(name).map { String(cString: $0) } ?? "-"
}

/// Returns the real user of the process, from a function that is not caught.
private func realUser() -> uid_t {
    typealias Number = UnsafeMutablePointer<uid_t>
    let function = unsafeBitCast(dlsym(nil, "getresuid"), to: (@convention(c) (Number, Number, Number) -> Int32).self)
    var (real, effective, saved) = (uid_t(), uid_t(), uid_t())
    _ = function(&real, &effective, &saved)
    return real
}

/// Code not written for simulations, which asks the C library for the surroundings of its process.
@Suite("Environments and users of simulated hosts, for the C library")
struct SurroundingsTests {
    /// Runs a block on the thread of a simulated host.
    private func run(
        environment: [String: String] = [:], captures: Bool = true, _ program: @escaping @Sendable () -> Void
    ) {
        withSimulation { simulation in
            if captures { simulation.captureExecutors() }
            SimulatedNetwork(simulation).addHost("server", environment: environment) { _ in program() }
            simulation.advance(by: .seconds(1))
        }
    }

    @Test(
        "each host has an environment of its own, new with each start; the test and threads outside have the real one")
    func environments() {
        let home = variable("PATH")
        let log = Log<String>()
        withSimulation { simulation in
            simulation.captureExecutors()
            let network = SimulatedNetwork(simulation)
            let hosts = ["a", "b"].map { name in
                network.addHost(name, environment: ["WHO": name]) { loop in
                    log("\(name): \(variable("WHO")) \(variable("PATH")) \(variable("MORE"))")
                    setenv("MORE", name, 1)
                    loop.perform(afterDelay: .seconds(1)) {
                        let thread = PlainThread { log("outside \(variable("PATH") == home)") }
                        thread.join()
                        log("\(name): \(variable("MORE"))")
                    }
                }
            }
            simulation.advance(by: .seconds(2))
            #expect(variable("PATH") == home && variable("MORE") == "-" && home != "-")
            hosts[0].start()
            simulation.advance(by: .milliseconds(500))
        }
        #expect(
            log.entries == [
                "a: a - -", "b: b - -", "outside true", "a: a", "outside true", "b: b", "a: a - -",
            ])
    }

    @Test("without captured executors, code that was not written for this has the real environment")
    func uncaptured() {
        run(environment: ["WHO": "server"], captures: false) { #expect(variable("WHO") == "-") }
    }

    @Test("variables are set and removed as in the C library; a value that was returned stays where it is")
    func changes() {
        /// Returns the answers to some calls, which are the same on a host and outside.
        @Sendable func answers() -> [String] {
            let first = getenv("RLK_A")
            var answers = [variable("RLK_A"), variable("RLK_")]
            answers += [
                "\(setenv("RLK_A", "2", 0))", variable("RLK_A"), "\(setenv("RLK_A", "3", 1))", variable("RLK_A"),
            ]
            answers.append(first.map { String(cString: $0) } ?? "-")
            for name in ["", "RLK=A"] { answers += ["\(setenv(name, "", 1)) \(errno)", "\(unsetenv(name)) \(errno)"] }
            answers += [
                "\(setenv("RLK_B", "", 1))", variable("RLK_B"),
                secureVariable("RLK_A"),
            ]
            let line = strdup("RLK_C=one")!
            answers += ["\(putenv(line))", variable("RLK_C")]
            // The line is a part of the environment.
            line[6] = CChar(UInt8(ascii: "O"))
            answers.append(variable("RLK_C"))
            answers += [
                "\(putenv(strdup("RLK_C=two")))", variable("RLK_C"), "\(putenv(strdup("RLK_C")))", variable("RLK_C"),
            ]
            for name in ["RLK_A", "RLK_B", "RLK_D"] { answers += ["\(unsetenv(name))", variable(name)] }
            answers.append(first.map { String(cString: $0) } ?? "-")
            return answers
        }
        setenv("RLK_A", "1", 1)
        let real = answers()
        let simulated = Log<[String]>()
        run(environment: ["RLK_A": "1"]) { simulated.append(answers()) }
        #expect(simulated.entries == [real] && real.count == 28)
        run(environment: ["RLK_A": "1"]) {
            #expect(clearenv() == 0)
            #expect(variable("RLK_A") == "-")
        }
        #expect(variable("PATH") != "-")
    }

    @Test("Foundation has the environment of the host, and keeps the host name that it found first")
    func foundation() {
        let name = ProcessInfo.processInfo.hostName
        run(environment: ["WHO": "server", "EMPTY": ""]) {
            setenv("MORE", "1", 1)
            #expect(ProcessInfo.processInfo.environment == ["WHO": "server", "EMPTY": "", "MORE": "1"])
            #expect(ProcessInfo.processInfo.hostName == name)
            var names = utsname()
            #expect(uname(&names) == 0)
            #expect(
                withUnsafeBytes(of: names.nodename) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
                    == "server")
            var room = [CChar](repeating: 1, count: 3)
            #expect(gethostname(&room, 3) == -1 && errno == ENAMETOOLONG && room == Array("ser".utf8CString.dropLast()))
        }
        #expect(ProcessInfo.processInfo.environment["WHO"] == nil && ProcessInfo.processInfo.environment["PATH"] != nil)
    }

    /// Returns the user that a call finds, as a line of text.
    private static func line(_ user: UnsafePointer<passwd>?) -> String {
        guard let user = user?.pointee else { return "-" }
        return "\(String(cString: user.pw_name)) \(user.pw_uid) \(user.pw_gid) \(String(cString: user.pw_dir))"
    }

    @Test("the user belongs to the host's process, and users come from the host's files")
    func users() {
        let user = ChildProcess.User(900, group: 901, supplementaryGroups: [50, 51])
        let real = [getuid(), geteuid(), getgid(), getegid()]
        withSimulation { simulation in
            simulation.captureExecutors()
            let log = Log<[UInt32]>()
            let found = Log<String>()
            let network = SimulatedNetwork(simulation)
            let host = network.addHost("server", user: user) { loop in
                loop.perform(afterDelay: .seconds(1)) {
                    log.append([getuid(), geteuid(), getgid(), getegid()])
                    var groups: [gid_t] = [0, 0, 0]
                    #expect(getgroups(0, nil) == 2 && getgroups(3, &groups) == 2 && groups == [50, 51, 0])
                    #expect(getgroups(1, &groups) == -1 && errno == EINVAL)
                    for name in ["root", "daemon", "nobody"] { found(Self.line(getpwnam(name))) }
                    for number: uid_t in [0, 900, 7] { found(Self.line(getpwuid(number))) }
                    var (user, room, result) = (
                        passwd(), [CChar](repeating: 0, count: 200), UnsafeMutablePointer<passwd>?.none
                    )
                    #expect(getpwuid_r(900, &user, &room, 200, &result) == 0)
                    found(Self.line(result))
                    #expect(getpwnam_r("nobody", &user, &room, 200, &result) == 0 && result == nil)
                    #expect(getpwnam_r("daemon", &user, &room, 5, &result) == ERANGE && result == nil)
                }
            }
            let users = "root:x:0:0::/root:/bin/sh\ndaemon:x:900:901:A daemon:/srv/daemon:/bin/false\n"
            host.disk.install(Array(users.utf8), at: "/etc/passwd")
            network.addHost("bare") { _ in
                log.append([getuid(), geteuid(), getgid(), getegid()])
                found("\(Self.line(getpwnam("root"))); \(Self.line(getpwuid(900)))")
            }
            simulation.advance(by: .seconds(2))
            #expect(log.entries == [[0, 0, 0, 0], [900, 900, 901, 901]])
            let (root, daemon) = ("root 0 0 /root", "daemon 900 901 /srv/daemon")
            #expect(found.entries == ["\(root); -", root, daemon, "-", root, daemon, "-", daemon])
            #expect([getuid(), geteuid(), getgid(), getegid()] == real)
        }
    }

    @Test("process numbers, groups, C's `environ` and changes of the user belong to the test's process")
    func notCaught() throws {
        typealias Lines = UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>
        // Its address, because Swift does not let several threads use a variable of C.
        nonisolated(unsafe) let environ = try #require(dlsym(nil, "environ")).assumingMemoryBound(to: Lines?.self)
        let (number, parent, user, path) = (getpid(), getppid(), realUser(), variable("PATH"))
        let log = Log<Bool>()
        withSimulation { simulation in
            simulation.captureExecutors()
            let network = SimulatedNetwork(simulation)
            let host = network.addHost("server", user: ChildProcess.User(7, group: 7), environment: ["PATH": "/no"]) {
                $0.perform(afterDelay: .seconds(1)) {
                    log.append(getpid() == number && getppid() == parent && realUser() == user)
                    log.append(getgrgid(0).map { String(cString: $0.pointee.gr_name) } == "root")
                    var line = environ.pointee
                    while let text = line?.pointee, !String(cString: text).hasPrefix("PATH=") {
                        line = line.map { $0 + 1 }
                    }
                    log.append(line?.pointee.map { String(cString: $0) } == "PATH=" + path)
                }
            }
            host.disk.install(Array("wheel:x:0:".utf8), at: "/etc/group")
            simulation.advance(by: .seconds(2))
        }
        #expect(log.entries == [true, true, true])
    }

    @Test("a child has the environment that its starter gives it, with the variables that other code has set")
    func children() {
        let log = Log<String>()
        withSimulation { simulation in
            simulation.captureExecutors()
            let host = SimulatedNetwork(simulation).addHost("server", environment: ["WHO": "server"]) { loop in
                setenv("MORE", "1", 1)
                for environment: ChildProcess.Environment in [.inherit, .updating(["WHO": nil, "X": "2"]), .only([:])] {
                    _ = try ChildProcess.spawn(.path("/bin/show"), environment: environment)
                }
                loop.perform(afterDelay: .seconds(1)) { log("parent: \(variable("X"))") }
            }
            host.install(program: "/bin/show") { process in
                log("\(variable("WHO")) \(variable("MORE")) \(variable("X")) \(process.environment.count)")
                setenv("X", "child", 1)
            }
            simulation.advance(by: .seconds(2))
        }
        #expect(log.entries == ["server 1 - 2", "- 1 2 2", "- - - 0", "parent: -"])
    }
}
