import Glibc
@_spi(Ports) import RunLoopCore
@_spi(Ports) import RunLoopKit
@_spi(Ports) import RunLoopSimulation
import TestSupport
import Testing

@testable import RunLoopHosts
@_spi(Ports) @testable import RunLoopUnix

/// Datagram sockets of one system and their results, as text.
private final class DatagramBench {
    let system: any SystemCalls
    let readiness: (Int32) -> DescriptorEvents
    private(set) var sockets: [Int32] = []
    /// The directory of the paths, with a slash at its end.
    private let directory: String

    init(_ system: any SystemCalls, in directory: String, readiness: @escaping (Int32) -> DescriptorEvents) {
        (self.system, self.directory, self.readiness) = (system, directory, readiness)
    }

    func end() {
        for index in sockets.indices where sockets[index] >= 0 { _ = close(index) }
        if refuser >= 0 { system.close(refuser) }
    }

    private func result(_ value: Int) -> String { value >= 0 ? "\(value)" : String(cString: strerror(errno)) }

    func open(_ family: Int32) -> String {
        let socket = system.datagramSocket(family)
        // This option has its own error for addresses of the other kind.
        system.setOption(socket, Int32(IPPROTO_IPV6), IPV6_V6ONLY, 1)
        sockets.append(socket)
        return socket >= 0 ? "opened" : result(-1)
    }

    func close(_ index: Int) -> String {
        let address = system.localAddress(of: sockets[index])
        system.close(sockets[index])
        sockets[index] = -1
        if let path = address.path, path.hasPrefix("/") { _ = system.removeFile(at: path) }
        return ""
    }

    /// Returns the number of the socket with an address; otherwise its path, or a word.
    func name(_ address: Endpoint) -> String {
        if let path = address.path { return path.replacing(directory, with: "") }
        if address.port == 0 { return "\(address)" }
        let index = sockets.firstIndex { $0 >= 0 && "\(system.localAddress(of: $0))" == "\(address)" }
        return index.map { "socket \($0)" } ?? "gone"
    }

    func hasNoPort(_ index: Int) -> Bool { system.localAddress(of: sockets[index]).port == 0 }

    func place(_ place: DatagramPlace, _ family: Int32) -> Endpoint {
        switch place {
        case .socket(let index): return system.localAddress(of: sockets[index])
        case .path(let number): return try! Endpoint(path: directory + "\(number)")
        case .abstract(let number): return try! Endpoint(path: "@" + directory + "\(number)")
        case .file: return try! Endpoint(path: directory + "missing/socket")
        case .any: return try! Endpoint(family == AF_INET6 ? "::" : "0.0.0.0", port: 0)
        case .loopback: return try! Endpoint(family == AF_INET6 ? "::1" : "127.0.0.1", port: 0)
        case .otherLoopback: return try! Endpoint(family == AF_INET6 ? "::ffff:127.0.0.2" : "127.0.0.2", port: 0)
        case .foreign: return try! Endpoint(family == AF_INET6 ? "2001:db8::1" : "192.0.2.1", port: 9)
        case .refuser: return refuserAddress(family)
        }
    }

    private var refuser: Int32 = -1
    /// Returns an address that refuses datagrams: of a socket that receives only from itself, so that no other one gets
    /// its port.
    private func refuserAddress(_ family: Int32) -> Endpoint {
        if refuser < 0 {
            refuser = system.datagramSocket(family)
            #expect(system.bind(refuser, to: place(.loopback, family)) == 0)
            #expect(system.connect(refuser, to: system.localAddress(of: refuser)) == 0)
        }
        return system.localAddress(of: refuser)
    }

    func bind(_ index: Int, to place: DatagramPlace, _ family: Int32) -> String {
        result(Int(system.bind(sockets[index], to: self.place(place, family))))
    }

    func connect(_ index: Int, to place: DatagramPlace, _ family: Int32) -> String {
        result(Int(system.connect(sockets[index], to: self.place(place, family))))
    }

    func send(
        _ counts: [Int], on index: Int, to place: DatagramPlace?, from source: DatagramPlace? = nil,
        typeOfService: Int32 = -1, _ family: Int32
    ) -> String {
        let address = place.map { self.place($0, family) } ?? Endpoint()
        let source = source.map { self.place($0, family) } ?? Endpoint()
        let bytes = (0..<(counts.max() ?? 0)).map { UInt8(truncatingIfNeeded: $0) }
        var slots = counts.map { count in
            var slot = DatagramSlot()
            (slot.address, slot.localAddress, slot.typeOfService) = (address, source, typeOfService)
            slot.bytes = .allocate(byteCount: count, alignment: 1)
            slot.bytes.copyBytes(from: bytes.prefix(count))
            return slot
        }
        defer { for slot in slots { slot.bytes.deallocate() } }
        return slots.withUnsafeMutableBufferPointer {
            result(system.send(sockets[index], $0, inSegments: false))
        }
    }

    func write(_ count: Int, on index: Int) -> String {
        [UInt8](repeating: 7, count: count).withUnsafeBytes { result(system.send(sockets[index], $0)) }
    }

    func receive(_ count: Int, room: Int, on index: Int) -> String {
        var slots = (0..<count).map { _ in
            var slot = DatagramSlot()
            slot.bytes = .allocate(byteCount: room, alignment: 1)
            return slot
        }
        defer { for slot in slots { slot.bytes.deallocate() } }
        let received = slots.withUnsafeMutableBufferPointer {
            system.receive(sockets[index], into: $0, withFacts: system.localAddress(of: sockets[index]).port != nil)
        }
        guard received > 0 else { return result(received) }
        return slots.prefix(received).map { slot in
            let sum = slot.bytes.prefix(slot.length).reduce(0) { $0 + Int($1) }
            let facts = slot.localAddress.port.map { _ in "\(slot.localAddress)" } ?? "unknown"
            return "\(slot.length) bytes (\(sum)) of \(name(slot.address)) to \(facts) (\(slot.typeOfService))"
        }.joined(separator: ", ")
    }

    func read(room: Int, on index: Int) -> String {
        var room = [UInt8](repeating: 0, count: room)
        return room.withUnsafeMutableBytes { result(system.read(sockets[index], into: $0)) }
    }

    func takeQueuedError(_ index: Int) -> String {
        system.takeQueuedError(sockets[index]).map { "error \($0.errno) of \(name($0.peer))" } ?? "none"
    }

    func queueErrors(of index: Int) -> String {
        system.setOption(sockets[index], Int32(IPPROTO_IP), IP_RECVERR, 1)
        system.setOption(sockets[index], Int32(IPPROTO_IPV6), IPV6_RECVERR, 1)
        return ""
    }

    func reportFacts(of index: Int, _ family: Int32) -> String {
        system.reportFacts(of: sockets[index], family, together: false)
        return ""
    }

    func setTypeOfService(_ value: Int32, of index: Int, _ family: Int32) -> String {
        let isSix = family == AF_INET6
        let level = Int32(isSix ? IPPROTO_IPV6 : IPPROTO_IP)
        return result(Int(system.setOption(sockets[index], level, isSix ? IPV6_TCLASS : Int32(IP_TOS), value)))
    }

    func option(_ level: Int32, _ option: Int32, of index: Int) -> String {
        system.option(sockets[index], level, option).map { "\($0)" } ?? "none"
    }

    func listen(_ index: Int) -> String { result(Int(system.listen(sockets[index], backlog: 1))) }

    func endWriting(_ index: Int) -> String {
        system.endWriting(sockets[index])
        return ""
    }

    func state(of index: Int) -> String {
        let socket = sockets[index]
        return "\(name(system.localAddress(of: socket))) \(readiness(socket))"
    }
}

/// An address for a random call.
private enum DatagramPlace {
    case socket(Int), path(Int), abstract(Int), file, any, loopback, otherLoopback, foreign, refuser
}

@Suite("Simulated datagram sockets, call by call")
struct DatagramCallTests {
    /// The number of calls in all rounds together; 100,000 take a minute.
    static let calls = amount(of: "DATAGRAM_CALLS", usually: 6_000)
    static let callsPerRound = 100

    /// Runs in a process of its own: where others start children, a child that begins has a closed socket for a moment.
    @Test(
        "random calls have the results that they have on the system's loopback",
        arguments: [AF_INET, AF_INET6, AF_UNIX])
    func random(family: Int32) async {
        await #expect(processExitsWith: .success) { [family] in
            let first = UInt64.random(in: 0...UInt64(UInt32.max)) << 16
            let directory = TemporaryDirectory()
            for round in 0..<(Self.calls / 3 / Self.callsPerRound) {
                guard Self.run(family, seed: first | UInt64(round), in: directory.path) else { return }
            }
        }
    }

    @Test("a Unix socket is writable as long as less than a quarter of its buffer is unread", arguments: [4, 5])
    func quarter(small: Int) {
        withSimulation { simulation in
            let network = SimulatedNetwork(simulation)
            let name = "quarter-\(getpid())-\(small)-"
            let benches = [
                DatagramBench(RealSystem.shared, in: name) { SocketCallTests.poll($0) },
                DatagramBench(network.system, in: name) { network.system.readiness(of: $0) },
            ]
            for bench in benches {
                defer { bench.end() }
                #expect(bench.open(AF_UNIX) == "opened")
                #expect(bench.bind(0, to: .abstract(0), AF_UNIX) == "0")
                #expect(bench.connect(0, to: .socket(0), AF_UNIX) == "0")
                let counts = Array(repeating: 1, count: small)
                #expect(bench.send(counts, on: 0, to: nil, AF_UNIX) == "\(small)")
                #expect(bench.write(45_754, on: 0) == "45754")
                #expect(bench.readiness(bench.sockets[0]) == (small < 5 ? [.readable, .writable] : .readable))
            }
        }
    }

    /// - Returns: `true` if both systems answered the same.
    private static func run(_ family: Int32, seed: UInt64, in directory: String) -> Bool {
        withSimulation(seed: seed) { simulation in
            let network = SimulatedNetwork(simulation)
            let fence = LoopbackFence(staysOnProcessor: true)
            let round = "\(directory)/\(seed)-"
            let benches = [
                DatagramBench(RealSystem.shared, in: round) { SocketCallTests.poll($0) },
                DatagramBench(network.system, in: "/\(seed)-") { network.system.readiness(of: $0) },
            ]
            defer { for bench in benches { bench.end() } }
            var random = SeededGenerator(seed: seed)
            var log: [String] = []
            var open: [Int] = []
            // The largest number of datagrams not received: the receivers' buffers of both systems differ.
            var unread = 0
            // Sockets that can be refused: of a batch to a closed port, the system may have sent any part before.
            var refusable: Set<Int> = []
            func both(_ words: String, _ body: (DatagramBench) -> String) -> Bool {
                let results = benches.enumerated().map { place, bench in
                    let result = body(bench)
                    if place == 0 { fence.wait() } else { simulation.advance(by: .milliseconds(1)) }
                    return "\(result) [\(open.map { "\($0) \(bench.state(of: $0))" }.joined(separator: "; "))]"
                }
                log.append("\(words): \(results[0])")
                #expect(
                    results[0] == results[1],
                    "family \(family), seed \(seed): \(log.suffix(15).joined(separator: "\n"))")
                return results[0] == results[1]
            }
            for _ in 0..<callsPerRound {
                let isSame: Bool
                let index = open.randomElement(using: &random)
                switch (Int.random(in: 0..<17, using: &random), index) {
                case (0, _), (_, nil):
                    guard open.count < 5 else { continue }
                    open.append(benches[0].sockets.count)
                    isSame = both("open") { $0.open(family) }
                case (1, let index?), (16, let index?):
                    let place = place(family, open, &random, binds: true)
                    isSame = both("bind \(index) to \(place)") { $0.bind(index, to: place, family) }
                case (2, let index?):
                    let place = place(family, open, &random)
                    // No socket can have port 0, which is the port of a socket without a name.
                    if case .socket(let other) = place, benches[0].hasNoPort(other) { continue }
                    refusable.insert(index)
                    isSame = both("connect \(index) to \(place)") { $0.connect(index, to: place, family) }
                case (3..<8, let index?):
                    guard unread < 40 else { continue }
                    let place = Bool.random(using: &random) ? nil : place(family, open, &random)
                    // The queue of a Unix socket has room for eleven.
                    let most =
                        family == AF_UNIX
                        ? [3, 3, 14].randomElement(using: &random)! : refusable.contains(index) ? 1 : 3
                    let counts = (0..<Int.random(in: 1...most, using: &random)).map { _ in
                        Int.random(in: 0..<100, using: &random)
                    }
                    unread += counts.count
                    let source: DatagramPlace? = [nil, nil, .any, .loopback, .otherLoopback, .foreign]
                        .randomElement(using: &random)!
                    let typeOfService = [-1, 0, 1, 46 << 2, 255].randomElement(using: &random)! as Int32
                    let way = "from \(source.map { "\($0)" } ?? "its address") (\(typeOfService))"
                    isSame = both("send \(counts) on \(index) to \(place.map { "\($0)" } ?? "the peer") \(way)") {
                        $0.send(counts, on: index, to: place, from: source, typeOfService: typeOfService, family)
                    }
                case (8, let index?):
                    guard unread < 40 || family == AF_UNIX else { continue }
                    unread += 1
                    let long = [65_508, 65_528, 300_000, Int.random(in: 0..<213_000, using: &random)]
                    let count = Bool.random(using: &random) ? 10 : long.randomElement(using: &random)!
                    isSame = both("write \(count) on \(index)") { $0.write(count, on: index) }
                case (9..<13, let index?):
                    let count = Int.random(in: 1...4, using: &random)
                    let room = [1, 50, 200].randomElement(using: &random)!
                    isSame = both("receive \(count), with room \(room), on \(index)") {
                        $0.receive(count, room: room, on: index)
                    }
                    if log.last!.contains("bytes") { unread -= log.last!.split(separator: " bytes").count - 1 }
                case (13, let index?):
                    switch Int.random(in: 0..<9, using: &random) {
                    case 0 where family != AF_UNIX:
                        isSame = both("take an error of \(index)") { $0.takeQueuedError(index) }
                    case 1 where family != AF_UNIX:
                        refusable.insert(index)
                        isSame = both("queue errors of \(index)") { $0.queueErrors(of: index) }
                    case 6 where family != AF_UNIX, 7 where family != AF_UNIX:
                        isSame = both("report facts of \(index)") { $0.reportFacts(of: index, family) }
                    case 8 where family != AF_UNIX:
                        let value = Int32.random(in: 0...255, using: &random)
                        isSame = both("type of service \(value) of \(index)") {
                            $0.setTypeOfService(value, of: index, family)
                        }
                    case 2: isSame = both("error of \(index)") { $0.option(SOL_SOCKET, SO_ERROR, of: index) }
                    case 3: isSame = both("type of \(index)") { $0.option(SOL_SOCKET, SO_TYPE, of: index) }
                    case 4: isSame = both("listen on \(index)") { $0.listen(index) }
                    default: isSame = both("read on \(index)") { $0.read(room: 20, on: index) }
                    }
                case (14, let index?):
                    guard Int.random(in: 0..<4, using: &random) == 0 else { continue }
                    isSame = both("end writing on \(index)") { $0.endWriting(index) }
                case (_, let index?):
                    open.removeAll { $0 == index }
                    isSame = both("close \(index)") { $0.close(index) }
                }
                guard isSame else { return false }
            }
            return true
        }
    }

    private static func place(
        _ family: Int32, _ open: [Int], _ random: inout SeededGenerator, binds: Bool = false
    ) -> DatagramPlace {
        let index = open.randomElement(using: &random)!
        let number = Int.random(in: 0..<3, using: &random)
        guard family != AF_UNIX else {
            let new: [DatagramPlace] = [.path(number), .path(number), .abstract(number), .file]
            let isNew = binds || Int.random(in: 0..<4, using: &random) == 0
            return isNew ? new.randomElement(using: &random)! : .socket(index)
        }
        if binds { return [.any, .loopback, .loopback, .foreign, .socket(index)].randomElement(using: &random)! }
        return [.socket(index), .socket(index), .socket(index), .refuser].randomElement(using: &random)!
    }
}
