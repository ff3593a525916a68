import Glibc
import RunLoopKit
import RunLoopSimulation
import TestSupport
import Testing

@_spi(Ports) @testable import RunLoopUnix

@Suite("Listeners")
struct ListenerTests {
    /// Accepts a few peers on an address, and returns the replies to each.
    private func greet(_ address: Endpoint, _ simulation: Simulation) throws -> String? {
        let loop = simulation.loop
        let listener = try Listener(address: address, on: loop) { _, descriptor, _ in
            let connection = Connection(adopting: descriptor, on: loop) { $1.count }
            try? connection.start()
            connection.write("welcome")
            connection.finish()
        }
        defer { listener.close() }
        let peer = Peer(connectedTo: listener.address)
        var answer: String? = ""
        simulation.settle {
            answer = peer.receive()
            return answer != ""
        }
        return answer
    }

    @Test("connections are accepted on IPv4, IPv6, a path, and an abstract name")
    func families() throws {
        try withSimulation { simulation in
            let path = "/tmp/rlk-listener-\(getpid())"
            let greetings = [
                try greet(Endpoint("127.0.0.1", port: 0), simulation),
                try greet(Endpoint("::1", port: 0), simulation),
                try greet(Endpoint(path: path), simulation),
                try greet(Endpoint(path: "@rlk-\(getpid())"), simulation),
            ]
            #expect(greetings == ["welcome", "welcome", "welcome", "welcome"])
            #expect(access(path, F_OK) != 0, "the path is removed at the end")
        }
    }

    @Test(
        "connections send at once or not, as the options say, regardless of the listening socket",
        arguments: [true, false], [nil, true, false])
    func noDelay(isWanted: Bool, ofInherited: Bool?) throws {
        try withSimulation { simulation in
            var options = Listener.Options()
            options.hasNoDelay = ofInherited ?? isWanted
            let address = try Endpoint("127.0.0.1", port: 0)
            var values: [Int32?] = []
            let handler: Listener.AcceptHandler = { _, descriptor, _ in
                values.append(RealSystem.shared.option(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY))
                close(descriptor)
            }
            let listener: Listener
            if ofInherited == nil {
                listener = try Listener(address: address, on: simulation.loop, options: options, handler: handler)
            } else {
                let descriptor = try RealSystem.shared.openListener(address, options)
                options.hasNoDelay = isWanted
                listener = try Listener(
                    inherited: descriptor, on: simulation.loop, options: options, handler: handler)
            }
            let peer = Peer(connectedTo: listener.address)
            simulation.settle { !values.isEmpty }
            #expect(values == [isWanted ? 1 : 0])
            peer.close()
            listener.close()
        }
    }

    @Test("a port in use is an error that says so")
    func inUse() throws {
        try withSimulation { simulation in
            let first = try Listener(address: Endpoint("127.0.0.1", port: 0), on: simulation.loop) {
                close($1); _ = $2
            }
            let error = #expect(throws: SystemError.self) {
                try Listener(address: first.address, on: simulation.loop) {
                    close($1); _ = $2
                }
            }
            #expect(error?.errno == EADDRINUSE)
            #expect(error?.operation == "bind to \(first.address)")
            first.close()
        }
    }

    @Test("a path that was left behind is taken over; a path with a listener is not")
    func stalePath() throws {
        try withSimulation { simulation in
            let loop = simulation.loop
            let address = try Endpoint(path: "/tmp/rlk-stale-\(getpid())")
            let stale = socket(AF_UNIX, SocketKind.stream, 0)
            #expect(address.withSystemAddress { bind(stale, $0, $1) } == 0)
            close(stale)
            let listener = try Listener(address: address, on: loop) {
                close($1); _ = $2
            }
            let error = #expect(throws: SystemError.self) {
                try Listener(address: address, on: loop) {
                    close($1); _ = $2
                }
            }
            #expect(error?.errno == EADDRINUSE)
            listener.close()
        }
    }

    @Test("a descriptor that was handed over must listen")
    func inherited() throws {
        try withSimulation { simulation in
            let idle = socket(AF_INET, SocketKind.stream, 0)
            defer { close(idle) }
            let error = #expect(throws: SystemError.self) {
                try Listener(inherited: idle, on: simulation.loop) {
                    close($1); _ = $2
                }
            }
            #expect(error?.errno == EINVAL)
            let listening = socket(AF_INET, SocketKind.stream, 0)
            #expect(listen(listening, 1) == 0)
            var accepted = 0
            let listener = try Listener(inherited: listening, on: simulation.loop) {
                accepted += 1
                close($1)
                _ = $2
            }
            let peer = Peer(connectedTo: listener.address)
            simulation.settle { accepted > 0 }
            #expect(accepted == 1)
            listener.close()
            withExtendedLifetime(peer) {}
        }
    }

    @Test("without a free descriptor a listener refuses, reports, rests, and continues")
    func noDescriptors() async {
        await #expect(processExitsWith: .exitCode(0)) { try runWithoutDescriptors() }
    }

    @Test("only the path of a socket without a listener is taken over")
    func notStale() throws {
        try withSimulation { simulation in
            let directory = TemporaryDirectory()
            directory.write("kept", to: "file")
            directory.makeDirectory("directory")
            #expect(symlink(directory["file"], directory["link"]) == 0)
            let datagrams = socket(AF_UNIX, SocketKind.datagrams, 0)
            defer { close(datagrams) }
            let bound = try Endpoint(path: directory["datagrams"])
            #expect(bound.withSystemAddress { bind(datagrams, $0, $1) } == 0)
            for name in ["file", "directory", "link", "datagrams"] {
                let error = #expect(throws: SystemError.self) {
                    try Listener(address: Endpoint(path: directory[name]), on: simulation.loop) {
                        close($1); _ = $2
                    }
                }
                #expect(error?.errno == EADDRINUSE, "\(name)")
            }
            var status = stat()
            #expect(stat(directory["file"], &status) == 0 && status.st_size == 4)
            for name in ["directory", "link", "datagrams"] { #expect(access(directory[name], F_OK) == 0, "\(name)") }
        }
    }

    /// Connects peers that have sent a line each, before the loop has run.
    private func eagerPeers(_ count: Int, of listener: Listener) -> [Peer] {
        (0..<count).map { number in
            let peer = Peer(connectedTo: listener.address)
            peer.send("\(number)\n")
            return peer
        }
    }

    @Test("a daemon that stops serves the peers that wait in the listener's queue", arguments: [false, true])
    func finish(isUnix: Bool) throws {
        try withSimulation { simulation in
            let (loop, directory) = (simulation.loop, TemporaryDirectory())
            let address = try isUnix ? Endpoint(path: directory["socket"]) : Endpoint("127.0.0.1", port: 0)
            var options = Listener.Options()
            options.budget = 2
            var connections: [Connection] = []
            let listener = try Listener(address: address, on: loop, options: options) { _, descriptor, _ in
                let connection = Connection(adopting: descriptor, on: loop) { connection, bytes in
                    connection.write("answer \(bytes.text)")
                    return bytes.count
                }
                try? connection.start()
                connections.append(connection)
            }
            let daemon = Daemon(loop: loop, manager: try ServiceManager(environment: [:]))
            daemon.onStop(.stopAccepting) { listener.finish() }
            daemon.onStop(.drain) { for connection in connections { connection.finish() } }
            let peers = eagerPeers(50, of: listener)
            daemon.stop()
            #expect(daemon.run() == 0)
            for (number, peer) in peers.enumerated() {
                var answer: String? = ""
                #expect(eventually("an answer") { (answer = peer.receive(), answer != "").1 })
                #expect(answer == "answer \(number)\n")
            }
            #expect(listener.acceptedCount == 50 && !listener.isOpen)
            #expect(!isUnix || access(directory["socket"], F_OK) != 0)
        }
    }

    @Test(
        "a group that stops accepting has read the first input of the peers that waited",
        arguments: [nil, LoopGroup.Spread.inTurn])
    func finishOfGroup(spread: LoopGroup.Spread?) throws {
        let read = Counter()
        let group = try LoopGroup(count: 2)
        let address = try group.listen(on: Endpoint("127.0.0.1", port: 0), spread: spread) { loop, descriptor, _ in
            let connection = Connection(adopting: descriptor, on: loop) { _, bytes in
                read.add()
                return bytes.count
            }
            try? connection.start()
        }
        // The loops are busy while the peers connect.
        let (busy, isFree) = (Counter(), Flag())
        group.performOnEach { _ in
            busy.add()
            while !isFree.isSet { usleep(100) }
        }
        #expect(eventually("both loops are busy") { busy.value == 2 })
        let peers = (0..<20).map { number in
            let peer = Peer(connectedTo: address)
            peer.send("\(number)\n")
            return peer
        }
        let (isDone, readBefore) = (Flag(), Counter())
        group.stopAccepting {
            readBefore.add(read.value)
            isDone.set()
        }
        isFree.set()
        #expect(eventually("the group has stopped accepting") { isDone.isSet } && readBefore.value == 20)
        withExtendedLifetime(peers) {}
        group.stop()
        group.join()
    }

    @Test("tasks receive the peers that waited when the listener finished, and then nil")
    func finishForTasks() throws {
        try withSimulation { simulation in
            let loop = simulation.loop
            let listener = try Listener(address: Endpoint("127.0.0.1", port: 0), on: loop)
            let peers = eagerPeers(3, of: listener)
            var lines: [String] = []
            var hasEnded = false
            loop.task {
                try await loop.clock.sleep(for: .seconds(1))
                while let connection = try await listener.accept() {
                    try connection.start()
                    if let bytes = try await connection.read() { lines.append(String(decoding: bytes, as: UTF8.self)) }
                    connection.close()
                }
                hasEnded = true
            }
            listener.finish()
            #expect(!listener.isOpen)
            simulation.advance(by: .seconds(1))
            simulation.settle { hasEnded }
            #expect(lines == ["0\n", "1\n", "2\n"])
            withExtendedLifetime(peers) {}
        }
    }

    @Test("an inherited listener leaves its queue to the process that has the descriptor as well")
    func finishOfInherited() throws {
        try withSimulation { simulation in
            let loop = simulation.loop
            let descriptor = try RealSystem.shared.openListener(Endpoint("127.0.0.1", port: 0), .init())
            let other = dup(descriptor)
            var accepted = 0
            let listener = try Listener(inherited: descriptor, on: loop) {
                accepted += 1
                close($1); _ = $2
            }
            let peers = eagerPeers(3, of: listener)
            listener.finish()
            #expect(accepted == 0 && !listener.isOpen)
            let next = try Listener(inherited: other, on: loop) {
                accepted += 1
                close($1); _ = $2
            }
            simulation.settle { accepted == 3 }
            next.close()
            withExtendedLifetime(peers) {}
        }
    }

    @Test("a handler that cannot serve its connection makes the listener pause, with one report for each pause")
    func failingHandler() throws {
        try withSimulation { simulation in
            let loop = simulation.loop
            var (errors, handled): ([Int32], Int) = ([], 0)
            let listener = try Listener(address: Endpoint("127.0.0.1", port: 0), on: loop) { listener, descriptor, _ in
                handled += 1
                close(descriptor)
                listener.pause(after: .system(descriptor, errno: ENOSPC))
            }
            listener.errorHandler = { errors.append($1.errno) }
            let peers = eagerPeers(20, of: listener)
            simulation.settle { !errors.isEmpty }
            simulation.advance(by: .milliseconds(99))
            #expect(handled == 1 && errors == [ENOSPC])
            simulation.advance(by: .milliseconds(1))
            simulation.settle { errors.count == 2 }
            #expect(handled == 2)
            listener.close()
            withExtendedLifetime(peers) {}
        }
    }

    @Test("a listener that finishes during a pause, and pauses again, leaves no timer in its loop")
    func finishDuringPause() throws {
        try withSimulation { simulation in
            let loop = simulation.loop
            var errors = 0
            var listener: Listener? = try Listener(address: Endpoint("127.0.0.1", port: 0), on: loop) {
                close($1)
                $0.pause(after: .system($1, errno: ENOSPC))
                _ = $2
            }
            listener?.errorHandler = { _, _ in errors += 1 }
            let peers = eagerPeers(20, of: listener!)
            simulation.settle { errors == 1 }
            listener?.finish()
            listener = nil
            #expect(errors == 2)
            let items = loop.dump().items
            #expect(items.isEmpty, "\(items)")
            // A timer that is left would need the listener.
            if items.isEmpty { simulation.advance(by: .seconds(1)) }
            withExtendedLifetime(peers) {}
        }
    }

    @Test("a stale path is left alone if that is asked for")
    func keptStalePath() throws {
        try withSimulation { simulation in
            let directory = TemporaryDirectory()
            let address = try Endpoint(path: directory["socket"])
            let stale = socket(AF_UNIX, SocketKind.stream, 0)
            #expect(address.withSystemAddress { bind(stale, $0, $1) } == 0)
            close(stale)
            var options = Listener.Options()
            options.replacesStalePath = false
            let error = #expect(throws: SystemError.self) {
                try Listener(address: address, on: simulation.loop, options: options) {
                    close($1); _ = $2
                }
            }
            #expect(error?.errno == EADDRINUSE)
        }
    }

    @Test("a listener that closes leaves the socket of another listener that has taken over its path")
    func takenOver() throws {
        try withSimulation { simulation in
            let directory = TemporaryDirectory()
            let address = try Endpoint(path: directory["socket"])
            let first = try Listener(address: address, on: simulation.loop) {
                close($1); _ = $2
            }
            directory.delete("socket")
            let second = try Listener(address: address, on: simulation.loop) {
                close($1); _ = $2
            }
            first.close()
            #expect(access(directory["socket"], F_OK) == 0)
            second.close()
            #expect(access(directory["socket"], F_OK) != 0)
        }
    }

    @Test("a path has the requested permissions, regardless of the umask", arguments: [0o000, 0o022, 0o777])
    func permissions(mask: mode_t) async {
        await #expect(processExitsWith: .success) { [mask] in
            let directory = TemporaryDirectory()
            umask(mask)
            func permissions(_ options: Listener.Options) throws -> mode_t {
                try withSimulation { simulation in
                    let address = try Endpoint(path: directory["socket"])
                    let listener = try Listener(address: address, on: simulation.loop, options: options) {
                        close($1); _ = $2
                    }
                    defer { listener.close() }
                    var status = stat()
                    lstat(directory["socket"], &status)
                    return status.st_mode & 0o777
                }
            }
            var options = Listener.Options()
            let usual = try permissions(options)
            options.permissions = 0o666
            let chosen = try permissions(options)
            precondition(usual == 0o600 && chosen == 0o666, "\(usual) \(chosen)")
            options.permissions = 0o1777
            do {
                _ = try permissions(options)
                fatalError("taken")
            } catch let error as SystemError {
                precondition(error.errno == EINVAL && access(directory["socket"], F_OK) != 0)
            }
        }
    }

    @Test("the end of its loop closes a listener, also one that rests", arguments: [false, true])
    func endOfLoop(rests: Bool) throws {
        let directory = TemporaryDirectory()
        let address = try Endpoint(path: directory["socket"])
        try withSimulation { simulation in
            var options = Listener.Options()
            options.rateLimit = RateLimit(interval: .seconds(60), burst: 1)
            let listener = try Listener(address: address, on: simulation.loop, options: options) {
                close($1); _ = $2
            }
            let peers = rests ? (0..<2).map { _ in Peer(connectedTo: address) } : []
            simulation.settle { listener.pauseCount == peers.count / 2 }
            #expect(listener.isOpen && listener.pauseCount == peers.count / 2)
        }
        let probe = socket(AF_UNIX, SocketKind.stream, 0)
        defer { close(probe) }
        #expect(address.withSystemAddress { connect(probe, $0, $1) } != 0 && errno == ENOENT)
    }

    @Test("the end of its loop leaves no descriptor of a listener open")
    func descriptorsAtEndOfLoop() async {
        await #expect(processExitsWith: .success) {
            let before = openFiles()
            let during = onThread { () -> [String] in
                _ = try! Listener(address: Endpoint("127.0.0.1", port: 0), on: RunLoop.current) {
                    close($1); _ = $2
                }
                return openFiles()
            }
            let nulls = [before, during, openFiles()].map { $0.count { $0 == "/dev/null" } }
            precondition(nulls[1] == nulls[0] + 1 && nulls[2] == nulls[0], "\(nulls)")
            let sockets = during.filter { $0.hasPrefix("socket:") && !before.contains($0) }
            precondition(sockets.count == 1 && !openFiles().contains(sockets[0]), "\(sockets)")
        }
    }

    @Test("connections over the rate limit wait, and are accepted in the next interval")
    func rateLimit() throws {
        try withSimulation { simulation in
            let loop = simulation.loop
            var options = Listener.Options()
            options.rateLimit = RateLimit(interval: .seconds(1), burst: 3)
            var times: [RunLoop.Instant] = []
            let listener = try Listener(address: Endpoint("127.0.0.1", port: 0), on: loop, options: options) {
                times.append(simulation.now)
                close($1)
                _ = $2
            }
            let peers = (0..<9).map { _ in Peer(connectedTo: listener.address) }
            simulation.settle { listener.pauseCount == 1 }
            let passes = loop.statistics.passes
            simulation.advance(by: .milliseconds(999))
            #expect(loop.statistics.passes - passes < 5, "it rests meanwhile")
            simulation.advance(by: .seconds(3))
            #expect(times == [0, 0, 0, 1_000, 1_000, 1_000, 2_000, 2_000, 2_000].map { ms($0) })
            #expect(listener.pauseCount == 2 && listener.acceptedCount == 9)
            listener.close()
            withExtendedLifetime(peers) {}
        }
    }

    @Test("a peer that is over its limit is turned away, and others are not")
    func peerRateLimit() throws {
        try withSimulation { simulation in
            let loop = simulation.loop
            var options = Listener.Options()
            options.peerRateLimit = RateLimit(interval: .seconds(1), burst: 2)
            options.rateLimit = RateLimit(interval: .seconds(1), burst: 3)
            let listener = try Listener(address: Endpoint("127.0.0.1", port: 0), on: loop, options: options) {
                close($1); _ = $2
            }
            func connect(_ count: Int, from text: String = "127.0.0.1") throws {
                let (accepted, turnedAway) = (listener.acceptedCount, listener.turnedAwayCount)
                let peers = try (0..<count).map { _ in
                    try Peer(connectedTo: listener.address, from: Endpoint(text, port: 0))
                }
                simulation.settle {
                    listener.acceptedCount - accepted + listener.turnedAwayCount - turnedAway == count
                        && peers.allSatisfy { $0.receive() == nil }
                }
            }
            try connect(5)
            #expect(listener.acceptedCount == 2 && listener.turnedAwayCount == 3)
            try connect(1, from: "127.0.0.2")
            #expect(listener.acceptedCount == 3 && listener.turnedAwayCount == 3 && listener.pauseCount == 0)
            simulation.advance(by: .seconds(1))
            try connect(2)
            #expect(listener.acceptedCount == 5 && listener.turnedAwayCount == 3)
            listener.close()
        }
    }

    @Test("the record of peers stays bounded, and takes O(1) on average")
    func boundedPeers() {
        var windows = PeerWindows(limit: RateLimit(interval: .seconds(1), burst: 1))
        var most = 0
        for peer: UInt64 in 0..<100_000 {
            let isAllowed = windows.take(peer, at: ms(Int64(peer) / 1_000))
            #expect(isAllowed)
            most = max(most, windows.windows.count)
        }
        #expect(most == PeerWindows.most)
        let again = [windows.take(99_999, at: ms(100)), windows.take(99_999, at: ms(1_100))]
        #expect(again == [false, true], "the last ones are known")
    }

    @Test(
        "a pause may be absurd",
        arguments: [Duration.zero, .seconds(-1), Duration(attoseconds: .max), Duration(attoseconds: .min)])
    func absurdPause(pause: Duration) async {
        await #expect(processExitsWith: .exitCode(0)) { [pause] in try runWithoutDescriptors(pause: pause) }
    }

    @Test("a pass accepts no more than its budget")
    func budget() throws {
        try withSimulation { simulation in
            let loop = simulation.loop
            var options = Listener.Options()
            options.budget = 3
            var perPass: [Int: Int] = [:]
            let listener = try Listener(address: Endpoint("127.0.0.1", port: 0), on: loop, options: options) {
                perPass[loop.statistics.passes, default: 0] += 1
                close($1)
                _ = $2
            }
            let peers = (0..<10).map { _ in Peer(connectedTo: listener.address) }
            simulation.settle { perPass.values.reduce(0, +) == 10 }
            #expect(perPass.values.reduce(0, +) == 10)
            #expect(perPass.values.max() == 3)
            listener.close()
            withExtendedLifetime(peers) {}
        }
    }
}

/// Accepts with room for two descriptors; ends the process with 0 if all checks pass.
private func runWithoutDescriptors(pause: Duration = Listener.Options().pause) throws {
    try withSimulation { simulation in
        let loop = simulation.loop
        var kept: [Int32] = []
        var options = Listener.Options()
        options.pause = pause
        let listener = try Listener(address: Endpoint("127.0.0.1", port: 0), on: loop, options: options) {
            _, descriptor, _ in
            kept.append(descriptor)
        }
        var errors: [Int32] = []
        listener.errorHandler = { errors.append($1.errno) }
        // Peers that have descriptors already.
        let peers = (0..<6).map { _ in Peer(connectedTo: listener.address) }
        // Every number below the limit is taken, except two; other threads of the process may take these as well.
        var last: Int32 = 0
        while last < 200 { last = dup(0) }
        close(last)
        close(last - 1)
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        let usual = limit.rlim_cur
        limit.rlim_cur = rlim_t(last + 1)
        guard setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { _exit(2) }
        simulation.settle { !errors.isEmpty }
        // Other threads of the process may have closed one or two meanwhile; six peers are there.
        guard errors.first == EMFILE, kept.count <= 4, listener.isOpen else { _exit(3) }
        let passes = loop.statistics.passes
        simulation.advance(by: .milliseconds(90))
        // A shorter pause has the connections that still wait refused, one after another.
        guard loop.statistics.passes - passes < (pause < .milliseconds(90) ? 200 : 5) else { _exit(4) }
        if pause > .milliseconds(100) { _exit(0) }
        limit.rlim_cur = usual
        guard setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { _exit(2) }
        simulation.advance(by: .milliseconds(20))
        simulation.settle { listener.acceptedCount + listener.refusedCount >= 6 }
        guard listener.acceptedCount >= 3 || pause < .milliseconds(90), listener.isOpen else { _exit(5) }
        _ = peers
        _exit(0)
    }
}

@Suite("Connecting")
struct ConnectingTests {
    @Test("a connection is made, and its handlers work")
    func success() throws {
        try withSimulation { simulation in
            let loop = simulation.loop
            let listener = try Listener(address: Endpoint("127.0.0.1", port: 0), on: loop) { _, descriptor, _ in
                let connection = Connection(adopting: descriptor, on: loop) { connection, bytes in
                    connection.write(bytes)
                    return bytes.count
                }
                try? connection.start()
            }
            var echoed = ""
            Connection.connect(to: listener.address, on: loop) { connection, bytes in
                echoed += bytes.text
                connection.finish()
                return bytes.count
            } completion: { result in
                guard case .success(let connection) = result else { return }
                try? connection.start()
                connection.write("hello")
            }
            simulation.advance(by: .seconds(1))
            #expect(echoed == "hello")
            listener.close()
        }
    }

    @Test("a refusal is an error, told later and once")
    func refused() throws {
        try withSimulation { simulation in
            let loop = simulation.loop
            let port = RefusingPort()
            var outcomes: [Int32] = []
            Connection.connect(to: try Endpoint("127.0.0.1", port: port.number), on: loop) {
                $1.count
            } completion: { result in
                if case .failure(let error) = result { outcomes.append(error.errno) }
            }
            #expect(outcomes.isEmpty)
            simulation.advance(by: .seconds(60))
            #expect(outcomes == [ECONNREFUSED])
        }
    }

    @Test("an attempt that was cancelled calls no completion")
    func cancelled() throws {
        try withSimulation { simulation in
            let loop = simulation.loop
            let listener = try Listener(address: Endpoint("127.0.0.1", port: 0), on: loop) {
                close($1); _ = $2
            }
            var outcomes = 0
            let attempt = Connection.connect(to: listener.address, on: loop) {
                $1.count
            } completion: { _ in
                outcomes += 1
            }
            attempt.cancel()
            simulation.advance(by: .seconds(60))
            #expect(outcomes == 0)
            #expect(!attempt.isPending)
            listener.close()
        }
    }

    @Test("a name is resolved off the loop, and an unknown one is an error")
    func resolver() {
        withSimulation { simulation in
            var found: [String] = []
            var failed: [String] = []
            for name in ["localhost", "127.0.0.1", "no such name.invalid"] {
                HostResolver.resolve(name, port: 80, on: simulation.loop) { result in
                    switch result {
                    case .success(let addresses): found += addresses.map(\.description)
                    case .failure(let failure): failed.append(failure.name)
                    }
                }
            }
            #expect(found.isEmpty && failed.isEmpty)
            simulation.runUntilIdle()
            #expect(found.contains("127.0.0.1:80"))
            #expect(failed == ["no such name.invalid"])
        }
    }
}

@Suite("Socket addresses")
struct EndpointTests {
    @Test("addresses print as they are written")
    func descriptions() throws {
        #expect(try Endpoint("127.0.0.1", port: 80).description == "127.0.0.1:80")
        #expect(try Endpoint("::1", port: 80).description == "[::1]:80")
        #expect(try Endpoint(path: "/run/x").description == "/run/x")
        #expect(try Endpoint(path: "@x").description == "@x")
        #expect(try Endpoint("::1", port: 8080).port == 8080)
        #expect(try Endpoint(path: "/run/x").port == nil)
    }

    @Test("text that is not an address is refused", arguments: ["localhost", "", "1.2.3", "1.2.3.4.5", ":::1"])
    func refused(text: String) {
        #expect(throws: SystemError.self) { try Endpoint(text, port: 1) }
    }

    @Test("text with a zero byte is refused, and not truncated")
    func zeroBytes() throws {
        #expect(throws: SystemError.self) { try Endpoint("127.0.0.1\0.example", port: 1) }
        let error = #expect(throws: SystemError.self) { try Endpoint(path: "/tmp/a\0b") }
        #expect(error?.errno == EINVAL)
        #expect(try Endpoint(path: "@a\0b").path == "@a\0b", "an abstract name may have some")
    }

    @Test("no text traps, and accepted text is returned unchanged", arguments: 1...20)
    func anyText(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let pieces = [
            "0", "1", "255", "256", "65536", "f", "ffff", "::", ":", ".", "%", "lo", "[", "]", "@", "/", "\0", " ", "-",
            "x", "é", "🧭", "\u{301}", "\r\n", "localhost", "0x", "_", String(repeating: "a", count: 60),
        ]
        for _ in 0..<500 {
            let text = (0..<Int.random(in: 0...9, using: &random)).map { _ in pieces.randomElement(using: &random)! }
                .joined()
            if let address = try? Endpoint(text, port: 7) {
                #expect(address.port == 7 && !text.utf8.contains(0), "seed \(seed): \(text)")
                #expect(address.with(port: 9).port == 9 && !address.description.isEmpty, "seed \(seed): \(text)")
            }
            if let address = try? Endpoint(path: text) {
                #expect(address.path.map { Array($0.utf8) } == Array(text.utf8), "seed \(seed): \(text)")
                #expect(address.with(port: 9).path == address.path && address.host == nil, "seed \(seed): \(text)")
                #expect((address.filePath == nil) == text.hasPrefix("@"), "seed \(seed): \(text)")
            }
        }
    }

    @Test("a limit counts an IPv4 address, or the network of an IPv6 address, as one peer")
    func hosts() throws {
        func host(_ text: String) throws -> UInt64 { try #require(Endpoint(text, port: 1).host) }
        #expect(try host("10.0.0.1") != host("10.0.0.2"))
        #expect(try host("2001:db8::1") == host("2001:db8::ffff:1"))
        #expect(try host("2001:db8::1") != host("2001:db8:0:1::1"))
        #expect(try host("::ffff:10.0.0.1") != host("::ffff:10.0.0.2"))
    }

    @Test("a path must have 1 to 107 bytes")
    func paths() throws {
        #expect(throws: SystemError.self) { try Endpoint(path: "") }
        #expect(throws: SystemError.self) { try Endpoint(path: String(repeating: "x", count: 108)) }
        #expect(try Endpoint(path: String(repeating: "x", count: 107)).path?.count == 107)
    }
}
