import Glibc
import RunLoopCore
import RunLoopKit
import RunLoopSimulation
@_spi(Ports) import RunLoopUnix
import TestSupport
import Testing

@testable import RunLoopHosts

@Suite("Users of simulated hosts")
struct UserTests {
    private static let daemon = ChildProcess.User(900, group: 900, supplementaryGroups: [50])
    private static let other = ChildProcess.User(901, group: 901, supplementaryGroups: [50])

    /// Returns the error's number, or 0.
    private static func errno(_ body: () throws -> Void) -> Int32 {
        do {
            try body()
            return 0
        } catch { return (error as! SystemError).errno }
    }

    @Test("a program writes where its user may; owners and permissions stay in a crash")
    func files() {
        withSimulation { simulation in
            let network = SimulatedNetwork(simulation)
            let log = Log<[Int32]>()
            let host = network.addHost("host", user: Self.daemon) { loop in
                loop.add(CustomSource(), forMode: .default)
                loop.perform(afterDelay: .seconds(1)) {
                    let disk = Disk.current
                    log.append(
                        [
                            "/data/file", "/etc/file", "/root/file", "/tmp/file", "/var/lib/daemon/file",
                            "/var/lib/others/file",
                        ].map { path in Self.errno { _ = try disk.open(path, .readingAndWritingNew) } })
                    log.append(
                        [
                            ("/etc/secret", .reading), ("/etc/shared", .reading), ("/etc/shared", .writing),
                            ("/etc/group", .reading),
                        ]
                        .map { path, access in Self.errno { _ = try disk.open(path, access) } })
                }
            }
            host.disk.installDirectory(at: "/var/lib/daemon", owner: Self.daemon, permissions: 0o700)
            host.disk.installDirectory(at: "/var/lib/others", owner: Self.other, permissions: 0o775)
            host.disk.install([1], at: "/etc/secret", permissions: 0o600)
            host.disk.install([1], at: "/etc/shared")
            host.disk.install([1], at: "/etc/group", owner: ChildProcess.User(0, group: 50), permissions: 0o640)
            simulation.advance(by: .seconds(2))
            host.crash()
            for path in ["/tmp/file", "/var/lib/daemon/file"] { host.disk.removeFile(at: path) }
            host.start()
            simulation.advance(by: .seconds(2))
            let answers = [[EACCES, EACCES, EACCES, 0, 0, EACCES], [EACCES, 0, EACCES, 0]]
            #expect(log.entries == answers + answers)
        }
    }

    @Test("a sticky directory is for all, and its names are their owners'")
    func sticky() {
        withSimulation { simulation in
            let network = SimulatedNetwork(simulation)
            let (one, other) = (network.makeSystem(as: Self.daemon), network.makeSystem(as: Self.other))
            let (path, new) = ("/tmp/file", "/tmp/new")
            one.close(one.open(path, flags: O_WRONLY | O_CREAT | O_EXCL))
            #expect(other.removeFile(at: path) == -1 && Glibc.errno == EPERM)
            #expect(other.rename(path, to: new) == -1 && Glibc.errno == EPERM)
            #expect(other.setPermissions(0o777, at: path) == -1 && Glibc.errno == EPERM)
            #expect(other.open(path, flags: O_RDONLY) == -1 && Glibc.errno == EACCES)
            #expect(one.setPermissions(0o604, at: path) == 0)
            #expect(other.open(path, flags: O_RDONLY) >= 0)
            #expect(one.rename(path, to: new) == 0 && one.removeFile(at: new) == 0)
        }
    }

    @Test("ports below 1024 are root's, and a socket's path needs a directory that its user may change")
    func sockets() {
        withSimulation { simulation in
            let network = SimulatedNetwork(simulation)
            let (root, user) = (network.system, network.makeSystem(as: Self.daemon))
            func bind(_ system: any SystemCalls, _ address: Endpoint) -> Int32 {
                let family = address.port == nil ? AF_UNIX : AF_INET
                let sockets = [system.socket(family), system.datagramSocket(family)]
                // The first socket takes the path.
                let answers = sockets.prefix(address.path == nil ? 2 : 1).map { socket in
                    system.bind(socket, to: address) == 0 ? 0 : Glibc.errno
                }
                for socket in sockets { system.close(socket) }
                #expect(answers.allSatisfy { $0 == answers[0] })
                return answers[0]
            }
            for port: UInt16 in [1, 80, 1_023] {
                #expect(bind(user, try! Endpoint("0.0.0.0", port: port)) == EACCES)
                #expect(bind(root, try! Endpoint("0.0.0.0", port: port)) == 0)
            }
            for port: UInt16 in [0, 1_024, 8_080] { #expect(bind(user, try! Endpoint("0.0.0.0", port: port)) == 0) }
            #expect(bind(user, try! Endpoint("192.0.2.1", port: 80)) == EADDRNOTAVAIL)
            #expect(bind(user, try! Endpoint(path: "/run/socket")) == EACCES)
            #expect(bind(user, try! Endpoint(path: "/tmp/socket")) == 0)
            #expect(bind(user, try! Endpoint(path: "@socket")) == 0)
            #expect(bind(root, try! Endpoint(path: "/root/socket")) == 0)
            #expect(user.removeFile(at: "/root/socket") == -1 && Glibc.errno == EACCES)
            let socket = user.socket(AF_UNIX)
            #expect(user.connect(socket, to: try! Endpoint(path: "/root/socket")) == -1 && Glibc.errno == EACCES)
            #expect(user.connect(socket, to: try! Endpoint(path: "/tmp/socket")) == -1 && Glibc.errno == ECONNREFUSED)
        }
    }

    @Test("a host finds users by name in its own files, and has only root without them")
    func names() {
        withSimulation { simulation in
            let network = SimulatedNetwork(simulation)
            #expect(try! ChildProcess.User(named: "root") == ChildProcess.User(0, group: 0, supplementaryGroups: [0]))
            #expect(Self.errno { _ = try ChildProcess.User(named: "www") } == ENOENT)
            let users = "root:x:0:0:root:/root:/bin/sh\nbroken:x:1\nwww:x:33:34:web:/var/www:/bin/false\n"
            let groups = "www:x:34:\nlogs:x:50:other,www\nmail:x:51:other\n"
            network.test.disk.install(Array(users.utf8), at: "/etc/passwd")
            network.test.disk.install(Array(groups.utf8), at: "/etc/group")
            #expect(
                try! ChildProcess.User(named: "www") == ChildProcess.User(33, group: 34, supplementaryGroups: [34, 50]))
            #expect(Self.errno { _ = try ChildProcess.User(named: "broken") } == ENOENT)
        }
    }

    @Test("a user signals the processes of the user only, and root all")
    func signals() throws {
        try withSimulation { simulation in
            let network = SimulatedNetwork(simulation)
            network.test.install(program: "/bin/rest") { $0.loop.perform(afterDelay: .seconds(60)) {} }
            let child = try ChildProcess.spawn(.path("/bin/rest"), user: Self.other)
            let number = child.processIdentifier
            for (user, reason) in [(Self.daemon, EPERM), (Self.other, 0)] {
                let system = network.makeSystem(as: user)
                #expect(system.kill(number, 0) == (reason == 0 ? 0 : -1) && (reason == 0 || Glibc.errno == reason))
                let descriptor = system.openProcess(number)
                #expect(system.send(0, toProcess: descriptor) == (reason == 0 ? 0 : -1))
            }
            #expect(network.makeSystem(as: Self.daemon).kill(number + 1, 0) == -1 && Glibc.errno == ESRCH)
            try child.kill(.terminate)
            simulation.advance(by: .seconds(1))
            #expect(network.test.processes.map { $0.isZombie } == [true])
        }
    }

    @Test("a child runs as the user of its starter, or as another one if root starts it")
    func children() {
        withSimulation { simulation in
            let network = SimulatedNetwork(simulation)
            let log = Log<String>()
            @Sendable func start(_ user: ChildProcess.User?) -> ChildProcess? {
                do {
                    return try ChildProcess.spawn(.path("/bin/try"), user: user)
                } catch {
                    log("\(error.errno == EPERM ? "refused" : "\(error)")")
                    return nil
                }
            }
            for (name, user) in [("root", nil), ("daemon", Self.daemon)] as [(String, ChildProcess.User?)] {
                let host = network.addHost(name, user: user) { loop in
                    loop.perform(afterDelay: .seconds(1)) {
                        _ = start(nil)
                        _ = start(Self.other)
                    }
                }
                host.disk.install([1], at: "/data/file", owner: Self.other, permissions: 0o600)
                host.install(program: "/bin/try") { _ in
                    let reason = Self.errno { _ = try Disk.current.open("/data/file", .reading) }
                    log("\(name) \(reason == 0 ? "reads" : "reads not")")
                }
            }
            simulation.advance(by: .seconds(2))
            #expect(log.entries == ["root reads", "root reads", "refused", "daemon reads not"])
        }
    }
}
