import Glibc
@_spi(Ports) import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@_spi(Ports) @testable import RunLoopUnix

@Suite("Groups of loops", .timeLimit(.minutes(5)))
struct LoopGroupTests {
    private static let local = try! Endpoint("127.0.0.1", port: 0)

    /// Serves each connection by sending it the name of its loop and closing.
    @Sendable
    private static func tellName(_ loop: RunLoop, _ descriptor: Int32, _ peer: Endpoint) {
        let connection = Connection(adopting: descriptor, on: loop) { $1.count }
        do { try connection.start() } catch { Issue.record("\(error)") }
        connection.write(loop.name!)
        connection.finish()
    }

    /// Returns the replies to peers that connect one after another.
    private func answers(of address: Endpoint, count: Int) -> [String] {
        (0..<count).map { _ in
            let peer = Peer(connectedTo: address)
            var answer: String? = ""
            _ = eventually {
                answer = peer.receive()
                return answer != ""
            }
            return answer ?? "refused"
        }
    }

    @Test(
        "loops are set up one after another on threads of their own, and run with nothing to do until they are stopped")
    func life() throws {
        let log = Log<String>()
        let group = try LoopGroup(count: 3, name: "worker") { loop, number in log("\(number) \(loop.name!)") }
        #expect(log.entries == ["0 worker 0", "1 worker 1", "2 worker 2"])
        #expect(group.loops.count == 3)
        let names = try group.loops.map { try $0.performAndWait { $0.name! } }
        #expect(names == ["worker 0", "worker 1", "worker 2"])
        group.stop()
        group.join()
        #expect(group.loops.allSatisfy { !$0.perform { _ in } })
    }

    @Test("there is at least one processor, and no more than the system has")
    func processors() {
        #expect((1...Int(sysconf(Int32(_SC_NPROCESSORS_CONF)))).contains(LoopGroup.processorCount))
    }

    @Test("a set-up that fails ends all threads, and its error is thrown")
    func failedSetUp() throws {
        struct Refusal: Error {}
        let (ended, log) = (Counter(), Log<String>())
        #expect(throws: Refusal.self) {
            _ = try LoopGroup(count: 3) { loop, number in
                log("\(number)")
                let token = Token { ended.add() }
                loop.perform(at: .distantFuture) { token.touch() }
                if number == 1 { throw Refusal() }
            }
        }
        #expect(log.entries == ["0", "1"])
        #expect(ended.value == 2, "their loops have ended when the error comes")
    }

    @Test("connections of TCP come to all loops, which listen on one port")
    func bySystem() throws {
        let group = try LoopGroup(count: 2, name: "worker")
        defer { end(group) }
        let address = try group.listen(on: Self.local, Self.tellName)
        #expect(address.port != 0)
        let counts = Dictionary(answers(of: address, count: 100).map { ($0, 1) }, uniquingKeysWith: +)
        #expect(Set(counts.keys) == ["worker 0", "worker 1"], "\(counts)")
    }

    @Test(
        "in turn, each loop gets as many connections; a Unix socket always takes turns", arguments: [false, true])
    func inTurn(isUnix: Bool) throws {
        let group = try LoopGroup(count: 3, name: "worker")
        defer { end(group) }
        let address = isUnix ? try Endpoint(path: "@rlk-group-\(getpid())") : Self.local
        let bound = try group.listen(on: address, spread: isUnix ? nil : .inTurn, Self.tellName)
        let expected = (0..<9).map { "worker \($0 % 3)" }
        #expect(answers(of: bound, count: 9) == expected)
    }

    @Test("an address in use is an error, and then no loop listens")
    func inUse() throws {
        let group = try LoopGroup(count: 2)
        defer { end(group) }
        let taken = try withLoopThread { thread in
            try thread.remote.performAndWait { loop in
                try Listener(address: Self.local, on: loop) {
                    close($1); _ = $2
                }.address
            }
        }
        let holder = socket(AF_INET, SocketKind.stream, 0)
        defer { close(holder) }
        #expect(taken.withSystemAddress { bind(holder, $0, $1) } == 0 && listen(holder, 1) == 0)
        for spread in [LoopGroup.Spread.bySystem, .inTurn] {
            let error = #expect(throws: SystemError.self) { try group.listen(on: taken, spread: spread, Self.tellName) }
            #expect(error?.errno == EADDRINUSE)
        }
    }

    @Test(
        "a group that accepts no more keeps its connections, and refuses new ones", arguments: [false, true])
    func stopAccepting(isInTurn: Bool) throws {
        let group = try LoopGroup(count: 2)
        defer { end(group) }
        let address = try group.listen(on: Self.local, spread: isInTurn ? .inTurn : .bySystem) { loop, descriptor, _ in
            let connection = Connection(adopting: descriptor, on: loop) { connection, bytes in
                connection.write(bytes)
                return bytes.count
            }
            do { try connection.start() } catch { Issue.record("\(error)") }
        }
        let peers = (0..<8).map { _ in Peer(connectedTo: address) }
        let isServed = { (peer: Peer) in
            peer.send("x")
            return eventually { peer.receive() == "x" }
        }
        #expect(peers.allSatisfy(isServed))
        let closed = Counter()
        group.stopAccepting { closed.add() }
        #expect(eventually { closed.value == 1 })
        let late = socket(AF_INET, SocketKind.stream, 0)
        defer { close(late) }
        #expect(address.withSystemAddress { connect(late, $0, $1) } == -1 && errno == ECONNREFUSED)
        #expect(peers.allSatisfy(isServed))
        group.stopAccepting { closed.add() }
        #expect(eventually { closed.value == 2 })
    }

    @Test(
        "a group takes over a listening socket from another one, and loses no connection that waits meanwhile",
        arguments: [false, true])
    func inherited(isUnix: Bool) throws {
        let address = isUnix ? try Endpoint(path: "@rlk-inherited-\(getpid())") : Self.local
        // The socket stays open, as in a service manager.
        let socket = try RealSystem.shared.openListener(address, Listener.Options())
        defer { close(socket) }
        var late: [Peer] = []
        for round in 1...3 {
            let group = try LoopGroup(count: 2, name: "worker")
            defer { end(group) }
            let bound = try group.listen(inherited: dup(socket), Self.tellName)
            #expect("\(bound)" == "\(RealSystem.shared.localAddress(of: socket))")
            if round == 1 { #expect(answers(of: bound, count: 4) == ["worker 0", "worker 1", "worker 0", "worker 1"]) }
            let answered = late.map { peer in
                var answer: String? = ""
                return eventually {
                    answer = peer.receive()
                    return answer != ""
                } ? answer : nil
            }
            #expect(answered == (round == 1 ? [] : ["worker 0", "worker 1", "worker 0"]))
            let stopped = Counter()
            group.stopAccepting { stopped.add() }
            #expect(eventually { stopped.value == 1 })
            late = (0..<3).map { _ in Peer(connectedTo: bound) }
        }
    }

    @Test("a descriptor that does not listen is not inherited")
    func notListening() throws {
        let group = try LoopGroup(count: 1)
        defer { end(group) }
        let (one, other) = makeSockets()
        defer { for descriptor in [one, other] { close(descriptor) } }
        let error = #expect(throws: SystemError.self) { try group.listen(inherited: one, Self.tellName) }
        #expect(error?.errno == EINVAL)
    }

    @Test("when accepting has stopped, every connection that was accepted has come to its loop")
    func lastConnections() throws {
        let group = try LoopGroup(count: 2)
        defer { end(group) }
        let log = Log<String>()
        let address = try group.listen(on: Self.local, spread: .inTurn) { _, descriptor, _ in
            log("connection")
            close(descriptor)
        }
        let (isThere, mayGoOn) = ([Flag(), Flag()], [Flag(), Flag()])
        func hold(_ number: Int) {
            // A custom source is served after a look at the mail, and before one at the descriptors.
            group.loops[number].perform { loop in
                let source = CustomSource { source in
                    isThere[number].set()
                    _ = eventually { mayGoOn[number].isSet }
                    source.invalidate()
                }
                loop.add(source, forMode: .common)
                source.signal()
            }
            #expect(eventually { isThere[number].isSet })
        }
        hold(0)
        let peers = (0..<2).map { _ in Peer(connectedTo: address) }
        group.stopAccepting { log("stopped") }
        hold(1)
        // The first loop finds the connections and the request together, and then has nothing more to do.
        mayGoOn[0].set()
        #expect(eventually { log.entries == ["connection"] })
        try group.loops[0].performAndWait { _ in }
        #expect(log.entries == ["connection"])
        mayGoOn[1].set()
        #expect(eventually { log.entries.count == 3 })
        #expect(log.entries == ["connection", "connection", "stopped"] && peers.count == 2)
    }

    @Test("a block is called on every loop that lives, and its completion once, even if loops have ended or end")
    func performOnEach() throws {
        let group = try LoopGroup(count: 3, name: "worker")
        let (log, completed) = (Log<String>(), Counter())
        group.performOnEach({ log($0.name!) }, completion: { completed.add() })
        #expect(eventually { completed.value == 1 })
        #expect(log.entries.sorted() == ["worker 0", "worker 1", "worker 2"])
        try group.loops[1].performAndWait { $0.endAllRuns() }
        for round in 2...20 {
            group.performOnEach(
                { _ in },
                completion: {
                    completed.add(); _ = round
                })
        }
        group.stop()
        group.join()
        #expect(eventually { completed.value == 20 })
        group.performOnEach({ log($0.name!) }, completion: { completed.add() })
        #expect(completed.value == 21)
        #expect(log.entries.count == 3)
    }

    @Test("a loop that has ended loses its turn, and a connection on its way to one that ends is closed")
    func endedLoops() throws {
        let group = try LoopGroup(count: 3)
        defer { end(group) }
        let address = try group.listen(on: Self.local, spread: .inTurn) { _, descriptor, _ in
            _ = "kept".withCString { write(descriptor, $0, 4) }
            close(descriptor)
        }
        #expect(answers(of: address, count: 3) == ["kept", "kept", "kept"])
        try group.loops[2].performAndWait { $0.endAllRuns() }
        #expect(eventually { !group.loops[2].perform { _ in } })
        #expect(answers(of: address, count: 4) == ["kept", "kept", "kept", "kept"])
        // The second loop ends in a mode in which it accepts no connections.
        let (isThere, mayEnd) = (Flag(), Flag())
        group.loops[1].perform { loop in
            loop.perform(inModes: "private") {
                isThere.set()
                _ = eventually { mayEnd.isSet }
                loop.endAllRuns()
            }
            loop.run(in: "private")
        }
        #expect(eventually { isThere.isSet })
        let peers = (0..<2).map { _ in Peer(connectedTo: address) }
        #expect(eventually { peers[0].receive() == "kept" })
        // The first loop has accepted both when it answers.
        try group.loops[0].performAndWait { _ in }
        mayEnd.set()
        #expect(eventually { peers[1].receive() != "" })
    }

    @Test("in a simulation a group lives on virtual time, and does the same in every run")
    func simulated() throws {
        func run() throws -> [String] {
            let log = Log<String>()
            try withSimulation { simulation in
                let group = try LoopGroup(count: 3, name: "worker") { loop, number in
                    loop.add(
                        Timer(timeInterval: .milliseconds(10 * (number + 1)), repeats: true) { _ in
                            log("\(loop.now) \(number)")
                        }, forMode: .default)
                }
                let address = try group.listen(
                    on: Endpoint(path: "@rlk-sim-\(getpid())-\(UInt32.random(in: 0 ... .max))")
                ) {
                    loop, descriptor, _ in
                    log("\(loop.now) connection on \(loop.name!)")
                    close(descriptor)
                }
                simulation.advance(by: .milliseconds(35))
                let peers = (0..<4).map { _ in Peer(connectedTo: address) }
                simulation.advance(by: .milliseconds(30))
                log("\(peers.count)")
                group.stop()
                group.join()
            }
            return log.entries
        }
        let first = try run()
        // The first loop accepts them all, and serves its own at once.
        let served = first.filter { $0.contains("connection") }.map { $0.suffix(8) }
        #expect(served == ["worker 0", "worker 0", "worker 1", "worker 2"])
        #expect(first.count == 6 + 3 + 2 + 4 + 1, "\(first)")
        #expect(try run() == first)
    }

    private func end(_ group: LoopGroup) {
        group.stop()
        group.join()
    }
}
