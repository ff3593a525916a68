import RunLoopHosts
import RunLoopKit
import RunLoopSimulation
import RunLoopUnix

extension Program {
    static let hosts = [acknowledgedTooEarly, overtakenWrite, lostInReconnect]

    /// Fails if the power fails in the millisecond between the write of a record and its sync, and the record was not
    /// on the disk yet. The process ends before its host crashes, so that it leaves no thread.
    private static let acknowledgedTooEarly = Program(
        name: "acknowledged-too-early", bug: "A store acknowledges a record when it is written, and syncs it later.",
        hasNetwork: true
    ) { simulation, isMended in
        let acknowledged = Shared(0)
        let store = SimulatedNetwork(simulation).addHost("store") { loop in
            let file = try Disk.current.open("/log", .writing)
            var count = 0
            let timer = Timer(timeInterval: .milliseconds(20), repeats: true) { _ in
                try? file.write([1], at: count)
                count += 1
                if !isMended { acknowledged.value = count }
                loop.perform(afterDelay: .milliseconds(1)) {
                    try? file.sync()
                    acknowledged.value = count
                }
            }
            loop.add(timer, forMode: .default)
        }
        store.disk.install([], at: "/log")
        var random = simulation.loop.randomNumbers
        simulation.advance(by: .microseconds(.random(in: 0..<200_000, using: &random)))
        store.remote?.stop()
        simulation.yield()
        store.crash()
        let kept = store.disk.contents(of: "/log")!.filter { $0 == 1 }.count
        try check(kept >= acknowledged.value, "\(acknowledged.value) records were acknowledged, and \(kept) are there")
    }

    /// Fails if the bytes of the write take much longer than the bytes of the order to read, and of the following read,
    /// so that the read arrives first.
    private static let overtakenWrite = Program(
        name: "overtaken-write", bug: "A writer does not wait for the store's answer before it has another host read.",
        hasNetwork: true
    ) { simulation, isMended in
        let network = SimulatedNetwork(simulation)
        network.link.jitter = .microseconds(1_500)
        let (storeAddress, readerAddress) = (try Endpoint("10.1.0.1", port: 7), try Endpoint("10.1.0.2", port: 7))
        let (write, order, read) = (UInt8(1), UInt8(2), UInt8(3))
        network.addHost("store", addresses: ["10.1.0.1"]) { loop in
            var value: UInt8 = 0
            let server = Server(on: loop) { connection, _ in
                connection.receiveHandler = { connection, bytes in
                    for index in bytes.indices {
                        if bytes[index] == write { value = 1 }
                        connection.write([value])
                    }
                    return bytes.count
                }
            }
            try server.listen(on: storeAddress)
        }
        let found = Shared<UInt8?>(nil)
        network.addHost("reader", addresses: ["10.1.0.2"]) { loop in
            let listener = try Listener(address: readerAddress, on: loop)
            loop.task {
                let store = try await Connection.connect(to: storeAddress, on: loop)
                let orders = try await listener.accept()
                _ = try await orders?.read()
                try await store.write([read])
                found.value = try await store.read()?.first
            }
        }
        let loop = simulation.loop
        loop.task {
            let store = try await Connection.connect(to: storeAddress, on: loop)
            let reader = try await Connection.connect(to: readerAddress, on: loop)
            try await loop.clock.sleep(for: .milliseconds(100))
            try await store.write([write])
            if isMended { _ = try await store.read() }
            try await reader.write([order])
            try await loop.clock.sleep(for: .seconds(1))
        }
        simulation.advance(by: .seconds(1))
        try check(found.value == 1, "the reader was notified, and found \(found.value ?? 0)")
    }

    /// Fails if the second request is under way while the server closes the connection, because it has been idle.
    private static let lostInReconnect = Program(
        name: "lost-in-reconnect", bug: "A client whose connection was closed forgets the request that was under way.",
        hasNetwork: true
    ) { simulation, isMended in
        let network = SimulatedNetwork(simulation)
        network.link.latency = .milliseconds(2)
        let address = try Endpoint("10.1.0.1", port: 7)
        network.addHost("server", addresses: ["10.1.0.1"]) { loop in
            let server = Server(on: loop) { connection, _ in
                connection.limits.idleTimeout = .milliseconds(100)
                connection.receiveHandler = { connection, bytes in
                    connection.write(bytes)
                    return bytes.count
                }
            }
            try server.listen(on: address)
        }
        let caller = Caller(address, simulation.loop, repeating: isMended)
        var random = simulation.loop.randomNumbers
        caller.ask(1)
        simulation.advance(by: .microseconds(.random(in: 50_000..<250_000, using: &random)))
        caller.ask(2)
        simulation.advance(by: .seconds(1))
        try check(caller.answered.contains(2), "request 2 was never answered")
    }

    private final class Caller {
        private(set) var answered: [UInt8] = []
        private let address: Endpoint
        private let loop: RunLoop
        private let repeats: Bool
        private var connection: Connection?
        private var pending: UInt8?

        /// - Parameter repeats: `true` to send requests under way again when the connection has been closed.
        init(_ address: Endpoint, _ loop: RunLoop, repeating repeats: Bool) {
            (self.address, self.loop, self.repeats) = (address, loop, repeats)
        }

        func ask(_ request: UInt8) {
            pending = request
            if let connection { connection.write([request]) } else { connect() }
        }

        private func connect() {
            Connection.connect(to: address, on: loop) { [self] _, bytes in
                bytes.withUnsafeBufferPointer { answered += $0 }
                pending = nil
                return bytes.count
            } completion: { [self] result in
                guard let connection = try? result.get() else { return }
                self.connection = connection
                connection.closeHandler = { [self] _, reason in
                    self.connection = nil
                    if repeats, pending != nil, reason != .loopEnded { connect() }
                }
                try? connection.start()
                if let pending { connection.write([pending]) }
            }
        }
    }
}
