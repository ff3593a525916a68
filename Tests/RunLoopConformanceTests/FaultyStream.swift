@_spi(Ports) import RunLoopKit
@_spi(Ports) import RunLoopUnix

/// A stream over another one, with a fault.
final class FaultyStream: ByteStream {
    enum Fault: String, CaseIterable {
        case damagesBytes = "what one end writes, the other one reads, in both directions"
        case turnsPiecesRound = "pieces that are written together arrive in their order"
        case waitsForNothing = "a write of no bytes moves none"
        case losesOutput =
            "a stream takes a limited number of bytes for a peer that does not read, and continues when it reads"
        case reportsNoRoom = "only events that the owner waits for are reported"
        case isInAllModes = "nothing is reported in a mode that the stream was not opened in"
        case hasNoName = "the sources of a stream have its name in reports"
        case keepsOwner = "an owner is kept until its stream is closed, and receives no event afterwards"
        case keepsEnd = "an end that has written its last still reads, and both ends find the end"
        case mayNeverClose = "once both sides have ended, a stream may be closed without loss"
        case hasNoReason = "a write to a peer that has gone fails, with a reason"
    }

    private let below: any ByteStream
    private let fault: Fault
    private var keptOwner: (any StreamOwner)?

    init(over below: any ByteStream, _ fault: Fault) {
        (self.below, self.fault) = (below, fault)
    }

    var owner: (any StreamOwner)? {
        get { below.owner }
        set {
            if fault == .keepsOwner { keptOwner = newValue }
            below.owner = newValue
        }
    }
    var interest: DescriptorEvents {
        get { below.interest }
        set { below.interest = fault == .reportsNoRoom ? newValue.subtracting(.writable) : newValue }
    }
    var isOpen: Bool { below.isOpen }
    var holdsInput: Bool { below.holdsInput }
    var failure: (any StreamFailure)? { fault == .hasNoReason ? nil : below.failure }
    var name: String? {
        get { below.name }
        set { if fault != .hasNoName { below.name = newValue } }
    }
    var fileDescriptor: Int32 { below.fileDescriptor }
    var unsentOutput: Int { below.unsentOutput }

    func open(
        on loop: RunLoop, inModes modes: RunLoop.Modes, origin: RunLoop.Origin, interest: DescriptorEvents
    ) throws(DescriptorError) {
        let modes = fault == .isInAllModes ? [.default, .tracking] : modes
        try below.open(on: loop, inModes: modes, origin: origin, interest: interest)
    }

    func read(into room: UnsafeMutableRawBufferPointer) -> StreamResult { below.read(into: room) }

    func write(_ bytes: UnsafeRawBufferPointer) -> StreamResult {
        if fault == .waitsForNothing && bytes.isEmpty { return .mustWait }
        var copy = Array(bytes)
        if fault == .damagesBytes, !copy.isEmpty { copy[0] ^= 1 }
        let result = copy.withUnsafeBytes { below.write($0) }
        return fault == .losesOutput && result == .mustWait ? .done(bytes.count) : result
    }

    func write(gathering pieces: UnsafeBufferPointer<UnsafeRawBufferPointer>) -> StreamResult {
        let pieces = fault == .turnsPiecesRound ? pieces.reversed() : Array(pieces)
        return pieces.withUnsafeBufferPointer { below.write(gathering: $0) }
    }

    func endWriting() -> StreamResult { fault == .keepsEnd ? .done(0) : below.endWriting() }
    func mayClose(peerHasEnded: Bool) -> Bool {
        fault != .mayNeverClose && below.mayClose(peerHasEnded: peerHasEnded)
    }
    func leave() { below.leave() }
    func close(_ ending: StreamEnding) { below.close(ending) }
}
