import Glibc
@_spi(Ports) import RunLoopCore
@_spi(Ports) import RunLoopKit
import RunLoopRecording
import RunLoopTLS
import RunLoopUnix
import TLSTestSupport
import TestSupport
import Testing

/// Records a program, replays it, and compares.
private func check(
    _ program: @escaping @Sendable (RunLoop, Outside) throws -> [String], outside: Outside = Outside(),
    sourceLocation: SourceLocation = #_sourceLocation
) throws {
    let record = RecordPath()
    let log = try withRecording(to: record.path) { try program($0, outside) }
    #expect(!log.isEmpty, sourceLocation: sourceLocation)
    let outcome = replay(record) { try program($0, Outside()) }
    #expect(outcome.value == log, sourceLocation: sourceLocation)
    if outcome.value == nil { Issue.record("\(outcome)", sourceLocation: sourceLocation) }
}

/// An event outside the program, once the program is ready. In a replay it does not happen.
private struct Outside: Sendable {
    var visit: @Sendable (Endpoint) -> Void = { _ in }
}

@Suite struct WorldTests {
    @Test func `children are part of a record`() throws {
        try check { loop, _ in
            var log: [String] = []
            for (number, command) in ["echo one; exit 3", "cat >&2; kill -9 $$", "sleep 0.02"].enumerated() {
                let child = try ChildProcess.spawn(
                    .path("/bin/sh"), arguments: ["-c", command], standardInput: .null, standardOutput: .pipe)
                log.append("child \(number) is \(child.processIdentifier)")
                let output = Connection(reading: child.standardOutput!, writing: nil, on: loop) { _, bytes in
                    log.append("\(number): \(bytes.withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) })")
                    return bytes.count
                }
                try output.start()
                try loop.add(ChildSource(child) { _, status in log.append("\(number) \(status)") }, forMode: .common)
            }
            #expect(throws: SystemError.self) { try ChildProcess.spawn(.path("/nowhere/program")) }
            loop.run(in: .default)
            return log
        }
    }

    @Test func `files and their events are part of a record`() throws {
        let directory = RecordPath().path + ".d"
        try check { loop, _ in
            var log: [String] = []
            let disk = Disk.current
            try disk.createDirectory(directory)
            let watcher = try FileWatcher { watcher, events in
                log += events.map { "\($0)" }
                if log.count > 8 { watcher.invalidate() }
            }
            _ = try watcher.watch(directory)
            try loop.add(watcher, forMode: .common)
            for round in 0..<3 {
                let file = try disk.open("\(directory)/new", .readingAndWritingNew)
                try file.write([UInt8](repeating: UInt8(round), count: 5000), at: 0)
                try file.write([1, 2, 3], at: 2500)
                try disk.open("\(directory)/new", .appending).append([4, 5])
                log.append("\(try file.size())")
                try file.sync()
                try disk.rename("\(directory)/new", to: "\(directory)/file")
                try disk.syncDirectory(of: "\(directory)/file")
                let again = try disk.open("\(directory)/file", .reading)
                log.append("\(try again.contents()[2495..<2510])")
                try again.withContents { log.append("\($0.count)") }
                loop.poll()
            }
            loop.run(in: .default)
            log.append("\(try disk.contentsOfDirectory(directory))")
            #expect(throws: SystemError.self) { try disk.open("\(directory)/nothing", .reading) }
            try disk.remove("\(directory)/file")
            try disk.removeDirectory(directory)
            log.append("\(disk.exists(directory))")
            return log
        }
    }

    @Test func `signals are part of a record`() throws {
        try check(
            { loop, outside in
                var log: [String] = []
                let source = try SignalSource(signal: .user2) { source in
                    log.append("\(source.count) at \(loop.now)")
                    loop.stop()
                }
                try loop.add(source, forMode: .common)
                outside.visit(.unnamed)
                loop.run(in: .default)
                source.invalidate()
                return log
            }, outside: Outside { _ in _ = kill(getpid(), SIGUSR2) })
    }

    @Test func `names and clocks on the wall are part of a record`() throws {
        try check { loop, _ in
            var log: [String] = ["\(loop.wallTime)"]
            for name in ["localhost", "nowhere.invalid", "localhost", "127.0.0.1", "localhost"] {
                HostResolver.resolve(name, port: 80, on: loop) { result in
                    log.append("\(name): \(result)")
                    if log.count == 6 { loop.stop() }
                }
            }
            loop.run(in: .default)
            let timer = WallTimer(at: loop.wallTime + .milliseconds(3)) { _ in log.append("\(loop.wallTime)") }
            loop.add(timer, forMode: .common)
            loop.run(in: .default)
            return log
        }
    }

    /// Look-ups of one name under way, which share a thread of the resolver, whatever their number.
    @Test func `look-ups at any time are part of a record`() throws {
        try check { loop, _ in
            var log: [String] = []
            var left = 40
            func look() {
                HostResolver.resolve("localhost", port: 80, on: loop) { result in
                    log.append("\(loop.now): \(result)")
                    left -= 1
                    if left == 0 { loop.stop() }
                }
            }
            var begun = 0
            loop.add(
                Timer(timeInterval: .microseconds(70), repeats: true) { timer in
                    look()
                    begun += 1
                    if begun == 40 { timer.invalidate() }
                }, forMode: .common)
            loop.run(in: .default)
            return log
        }
    }

    @Test func `datagrams are part of a record`() throws {
        try check { loop, _ in
            var log: [String] = []
            let address = try Endpoint("127.0.0.1", port: 0)
            let server = try DatagramSocket(address: address, on: loop) { server, bytes, header in
                server.send(bytes, to: header.sender)
                log.append("\(bytes.count) bytes from \(header.sender)")
            }
            let client = try DatagramSocket(peer: server.address, on: loop) { _, bytes, _ in
                log.append("\(bytes.count) bytes back")
                if log.count == 40 { loop.stop() }
            }
            for size in 0..<20 { client.send([UInt8](repeating: 7, count: size * 50)) }
            loop.run(in: .default)
            server.close()
            client.close()
            return log
        }
    }

    /// Both sides of TLS, one of them a part of the record, with tickets, whose times come from the world.
    @Test(arguments: [true, false]) func `TLS is part of a record`(isServer: Bool) throws {
        let contexts = try Contexts()
        let (identity, roots, visitor) = (contexts.identity, contexts.authority.roots, contexts.client)
        let visitors = Locked<[LoopThread]>([])
        try check(
            { loop, outside in
                // New contexts, because each has keys of its own.
                let (server, client) = try (
                    TLSServerContext(identity: identity, options: .patient),
                    TLSClientContext(roots: roots, options: .patient)
                )
                var log: [String] = []
                var closed = 0
                let listener = try Listener(address: Endpoint("127.0.0.1", port: 0), on: loop) { _, descriptor, _ in
                    do {
                        let connection = try Connection(adopting: descriptor, on: loop, tls: server) {
                            connection, bytes in
                            log.append("\(bytes.count) bytes")
                            connection.write(bytes)
                            return bytes.count
                        }
                        connection.closeHandler = { _, reason in
                            log.append("\(reason)")
                            closed += 1
                            if closed == 3 { loop.stop() }
                        }
                        try connection.start()
                    } catch {
                        log.append("\(error)")
                    }
                }
                if isServer {
                    outside.visit(listener.address)
                } else {
                    for _ in 0..<3 { try visitOverTLS(listener.address, client, on: loop) { log.append($0) } }
                }
                loop.run(in: .default)
                listener.close()
                return log
            },
            outside: Outside { address in
                guard isServer else { return }
                let thread = LoopThread(name: "visitor", in: RunLoop.realWorld) { loop in
                    for _ in 0..<3 {
                        try? visitOverTLS(address, visitor, on: loop) { _ in }
                    }
                }
                visitors.withLock { $0.append(thread) }
            })
        for visitor in visitors.withLock(\.self) { visitor.join() }
    }
}

private func visitOverTLS(
    _ address: Endpoint, _ client: TLSClientContext, on loop: RunLoop, _ note: @escaping (String) -> Void
) throws {
    var received = 0
    try Connection.connect(to: address, on: loop, tls: client, serverName: "localhost") { connection, bytes in
        received += bytes.count
        note("\(bytes.count) bytes back")
        if received == 20_000 { connection.finish() }
        return bytes.count
    } completion: { result in
        guard case .success(let connection) = result, (try? connection.start()) != nil else { return }
        connection.write([UInt8](repeating: 5, count: 20_000))
    }
}
