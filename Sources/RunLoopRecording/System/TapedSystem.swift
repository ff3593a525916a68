internal import Glibc
@_spi(Ports) internal import RunLoopCore
@_spi(Ports) internal import RunLoopUnix

/// The system calls of a recorded or replayed world: the real system's, with the tape of the calling thread.
final class TapedSystem: SystemCalls {
    let tapes: Tapes
    let real = WorldSystem.real

    init(_ tapes: Tapes) {
        self.tapes = tapes
    }

    var isReplay: Bool { tapes.replay != nil }

    func call<Result>(
        _ kind: EventKind, _ arguments: [Argument], _ coding: Coding<Result>, _ ask: () -> Result
    ) -> Result {
        tapes.call(kind, arguments, coding, ask)
    }

    /// Performs a call with one argument, such as a descriptor.
    func call<Value: TapedArgument, Result>(
        _ kind: EventKind, _ value: Value, _ coding: Coding<Result>, _ ask: (Value) -> Result
    ) -> Result {
        call(kind, [value.argument], coding) { ask(value) }
    }

    /// Performs a call with two arguments.
    func call<First: TapedArgument, Second: TapedArgument, Result>(
        _ kind: EventKind, _ first: First, _ second: Second, _ coding: Coding<Result>,
        _ ask: (First, Second) -> Result
    ) -> Result {
        call(kind, [first.argument, second.argument], coding) { ask(first, second) }
    }

    // MARK: Any descriptor

    func isSocket(_ descriptor: Int32) -> Bool { call(.isSocket, descriptor, .bool, real.isSocket) }

    // The bytes would pass by the tape.
    var splices: Bool { false }

    func prepare(_ descriptor: Int32) { call(.prepare, descriptor, .none, real.prepare) }

    func read(_ descriptor: Int32, into room: UnsafeMutableRawBufferPointer) -> Int {
        guard let tape = Tape.current else {
            return tapes.callWithoutTape("read(\(descriptor))") { real.read(descriptor, into: room) }
        }
        return tape.read(.read, descriptor, at: nil, into: room) { real.read(descriptor, into: room) }
    }

    func write(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer) -> Int {
        write(.write, descriptor, bytes) { real.write(descriptor, bytes) }
    }

    private func write(
        _ kind: EventKind, _ descriptor: Int32, _ bytes: UnsafeRawBufferPointer, _ ask: () -> Int
    ) -> Int {
        guard let tape = Tape.current else { return tapes.callWithoutTape("\(kind)(\(descriptor))", ask) }
        return tape.write(kind, descriptor, at: nil, bytes, ask)
    }

    func close(_ descriptor: Int32) { call(.close, descriptor, .none, real.close) }

    // The counts of references decide which thread calls this: it is not recorded, and need not be, because the world
    // answers nothing.
    func release(_ descriptor: Int32, unlocking isLocked: Bool) {
        if !isReplay { real.release(descriptor, unlocking: isLocked) }
    }

    func openReserve() -> Int32 { call(.openReserve, [], .int32, real.openReserve) }

    // MARK: Sockets

    func socket(_ family: Int32) -> Int32 { call(.socket, family, .int32, real.socket) }

    @discardableResult
    func setOption(_ descriptor: Int32, _ level: Int32, _ option: Int32, _ value: Int32) -> Int32 {
        call(.setOption, [.number(descriptor), .number(level), .number(option), .number(value)], .int32) {
            real.setOption(descriptor, level, option, value)
        }
    }

    func option(_ descriptor: Int32, _ level: Int32, _ option: Int32) -> Int32? {
        call(.option, [.number(descriptor), .number(level), .number(option)], .optional(.int32)) {
            real.option(descriptor, level, option)
        }
    }

    func bind(_ descriptor: Int32, to address: Endpoint) -> Int32 {
        call(.bind, [.number(descriptor), .text("\(address)")], .int32) { real.bind(descriptor, to: address) }
    }

    func listen(_ descriptor: Int32, backlog: Int32) -> Int32 {
        call(.listen, descriptor, backlog, .int32, real.listen)
    }

    func accept(_ descriptor: Int32, peer: inout Endpoint) -> Int32 {
        let accepted = call(.accept, descriptor, .accepted) { descriptor in
            var peer = Endpoint()
            let connection = real.accept(descriptor, peer: &peer)
            return Accepted(descriptor: connection, peer: peer)
        }
        peer = accepted.peer
        return accepted.descriptor
    }

    func connect(_ descriptor: Int32, to address: Endpoint) -> Int32 {
        call(.connect, [.number(descriptor), .text("\(address)")], .int32) { real.connect(descriptor, to: address) }
    }

    func localAddress(of descriptor: Int32) -> Endpoint {
        call(.localAddress, descriptor, .endpoint, real.localAddress)
    }

    func peerAddress(of descriptor: Int32) -> Endpoint {
        call(.peerAddress, descriptor, .endpoint, real.peerAddress)
    }

    func hasInput(_ descriptor: Int32) -> Bool { call(.hasInput, descriptor, .bool, real.hasInput) }

    func send(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer) -> Int {
        write(.send, descriptor, bytes) { real.send(descriptor, bytes) }
    }

    func send(_ descriptor: Int32, gathering pieces: UnsafeBufferPointer<UnsafeRawBufferPointer>) -> Int {
        // In one piece, because the tape has one digest.
        var bytes: [UInt8] = []
        for piece in pieces { bytes += piece }
        return bytes.withUnsafeBytes { bytes in
            write(.sendPieces, descriptor, bytes) { real.send(descriptor, gathering: pieces) }
        }
    }

    func endWriting(_ descriptor: Int32) { call(.endWriting, descriptor, .none, real.endWriting) }

    func unsentOutput(_ descriptor: Int32) -> Int { call(.unsentOutput, descriptor, .int, real.unsentOutput) }

    func resetWhenClosed(_ descriptor: Int32) { call(.resetWhenClosed, descriptor, .none, real.resetWhenClosed) }

    func spreadsConnections(of loop: RunLoop) -> Bool { real.spreadsConnections(of: loop) }

    // MARK: Datagrams

    func datagramSocket(_ family: Int32) -> Int32 { call(.datagramSocket, family, .int32, real.datagramSocket) }

    func receive(_ descriptor: Int32, into slots: UnsafeMutableBufferPointer<DatagramSlot>, withFacts: Bool) -> Int {
        let received = call(.receiveDatagrams, descriptor, .datagrams(tapes.payload)) { descriptor in
            let count = real.receive(descriptor, into: slots, withFacts: withFacts)
            return Datagrams(
                count: count,
                received: slots.prefix(max(0, count)).map { slot in
                    .init(slot: slot, bytes: Array(slot.bytes.prefix(min(slot.length, slot.bytes.count))))
                })
        }
        if isReplay {
            for (index, datagram) in received.received.enumerated().prefix(slots.count) {
                tapes.needPayload()
                let room = slots[index].bytes
                slots[index] = datagram.slot
                slots[index].bytes = room
                room.copyBytes(from: datagram.bytes.prefix(room.count))
            }
        }
        return received.count
    }

    func send(_ descriptor: Int32, _ slots: UnsafeMutableBufferPointer<DatagramSlot>, inSegments: Bool) -> Int {
        var bytes: [UInt8] = []
        for slot in slots {
            bytes += slot.bytes
            bytes += "\(slot.address) \(slot.localAddress) \(slot.typeOfService)".utf8
        }
        return bytes.withUnsafeBytes { bytes in
            call(.sendDatagrams, [.number(descriptor), .number(slots.count), .digest(bytes)], .int) {
                real.send(descriptor, slots, inSegments: inSegments)
            }
        }
    }

    func takeQueuedError(_ descriptor: Int32) -> QueuedError? {
        call(.takeQueuedError, descriptor, .optional(.queuedError), real.takeQueuedError)
    }

    func changeMembership(_ descriptor: Int32, joins: Bool, group: Endpoint, interface: String?) -> Int32 {
        let arguments: [Argument] = [
            .number(descriptor), .number(joins ? 1 : 0), .text("\(group)"), .text(interface ?? ""),
        ]
        return call(.changeMembership, arguments, .int32) {
            real.changeMembership(descriptor, joins: joins, group: group, interface: interface)
        }
    }

    // MARK: The time of a simulation

    func holdTime(for what: @autoclosure () -> String, on loop: RunLoop) -> (any TimeHold)? { nil }
    func makeHolds(for socket: Int32, on loop: RunLoop, _ origin: RunLoop.Origin) -> StreamHolds? { nil }
}

/// The result of `accept`.
struct Accepted {
    var descriptor: Int32
    var peer: Endpoint
}

/// Datagrams that a call has received.
struct Datagrams {
    struct Received {
        /// The facts about the datagram, without the bytes.
        var slot: DatagramSlot
        var bytes: [UInt8]
    }

    /// The number of datagrams, or negative.
    var count: Int
    var received: [Received]
}

extension Coding where Value == Endpoint {
    static let endpoint = Coding { endpoint, bytes in
        endpoint.withSystemBytes { bytes.put($0) }
    } decode: { coded in
        let bytes = coded.content()
        return bytes.withUnsafeBytes { try? Endpoint(systemBytes: $0) } ?? Endpoint()
    }
}

extension Coding where Value == Accepted {
    static let accepted = Coding { accepted, bytes in
        bytes.put(Int(accepted.descriptor))
        if accepted.descriptor >= 0 { Coding<Endpoint>.endpoint.encode(accepted.peer, &bytes) }
    } decode: { bytes in
        let descriptor = bytes.int32()
        return Accepted(
            descriptor: descriptor, peer: descriptor >= 0 ? Coding<Endpoint>.endpoint.decode(&bytes) : Endpoint())
    }
}

extension Coding where Value == QueuedError {
    static let queuedError = Coding { error, bytes in
        bytes.put(Int(error.errno))
        Coding<Endpoint>.endpoint.encode(error.peer, &bytes)
        bytes.put(error.isLocal)
    } decode: { bytes in
        QueuedError(
            errno: bytes.int32(), peer: Coding<Endpoint>.endpoint.decode(&bytes), isLocal: bytes.flag())
    }
}

extension Coding where Value == Datagrams {
    static func datagrams(_ payload: Coding<[UInt8]>) -> Coding {
        let received = Coding<Datagrams.Received> { datagram, bytes in
            let slot = datagram.slot
            Coding<Endpoint>.endpoint.encode(slot.address, &bytes)
            Coding<Endpoint>.endpoint.encode(slot.localAddress, &bytes)
            bytes.put(slot.length)
            bytes.put(Int(slot.typeOfService))
            bytes.put(Int(slot.interface))
            bytes.put(slot.segmentSize)
            payload.encode(datagram.bytes, &bytes)
        } decode: { bytes in
            var slot = DatagramSlot()
            slot.address = Coding<Endpoint>.endpoint.decode(&bytes)
            slot.localAddress = Coding<Endpoint>.endpoint.decode(&bytes)
            slot.length = bytes.number()
            slot.typeOfService = bytes.int32()
            slot.interface = UInt32(truncatingIfNeeded: bytes.number())
            slot.segmentSize = bytes.number()
            return .init(slot: slot, bytes: payload.decode(&bytes))
        }
        return Coding { datagrams, bytes in
            bytes.put(datagrams.count)
            Coding<[Datagrams.Received]>.list(received).encode(datagrams.received, &bytes)
        } decode: { bytes in
            Datagrams(count: bytes.number(), received: Coding<[Datagrams.Received]>.list(received).decode(&bytes))
        }
    }
}
