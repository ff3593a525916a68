internal import Glibc
@_spi(Ports) public import RunLoopKit

/// A stream on descriptors, which it owns: a socket, a terminal, or the ends of one or two pipes.
final class DescriptorStream: ByteStream {
    private let input: Int32
    private var output: Int32
    private let system: any SystemCalls
    private let isSocket: Bool
    private var isDuplex: Bool { input == output }

    // A descriptor that is both read and written has one source.
    private var reader: DescriptorSource?
    private var writer: DescriptorSource?
    // Unchecked as in `Connection`.
    @exclusivity(unchecked) var owner: (any StreamOwner)?
    private var isClosed = false
    /// The meter of the stream's bytes, if the loop is recorded.
    private var meter: FlightMeter? {
        didSet { meterReference = meter.map { .passUnretained($0) } }
    }
    /// Unretained `meter`; retaining it cost four locked instructions per request.
    // Not an `UnownedReference`: the compiler does not inline that from another module, which cost 30 instructions.
    private var meterReference: Unmanaged<FlightMeter>?
    /// The holds on the time of a simulation.
    private var holds: StreamHolds?
    /// True if this side connected, so that the other side answers.
    private let isClient: Bool

    private(set) var failure: (any StreamFailure)?
    var interest: DescriptorEvents = [] {
        didSet { if interest != oldValue { interestChanged() } }
    }

    init(input: Int32, output: Int32, _ system: any SystemCalls, isClient: Bool = false) {
        self.isClient = isClient
        self.input = input
        self.output = output
        self.system = system
        isSocket = input == output && system.isSocket(input)
    }

    deinit {
        close(.incomplete)
    }

    /// True if the kernel can move bytes between this stream and another such stream.
    var maySplice: Bool { isSocket && system.splices }

    var isOpen: Bool { true }
    var holdsInput: Bool { false }
    var fileDescriptor: Int32 { input >= 0 ? input : output }

    var name: String? {
        didSet {
            reader?.name = sourceName
            writer?.name = sourceName
            meter = (reader ?? writer)?.makeMeter(fileDescriptor)
        }
    }
    private var sourceName: String { name ?? "connection" }

    func open(
        on loop: RunLoop, inModes modes: RunLoop.Modes, origin: RunLoop.Origin, interest: DescriptorEvents
    ) throws(DescriptorError) {
        assert(reader == nil && writer == nil && !isClosed, "a stream is opened twice, or after its end")
        self.interest = interest
        if isSocket { holds = system.makeHolds(for: input, on: loop, origin) }
        if input >= 0 { reader = try watch(input, on: loop, modes, origin) }
        if output >= 0 && !isDuplex { writer = try watch(output, on: loop, modes, origin) }
        meter = (reader ?? writer)?.makeMeter(fileDescriptor)
    }

    private func watch(
        _ descriptor: Int32, on loop: RunLoop, _ modes: RunLoop.Modes, _ origin: RunLoop.Origin
    ) throws(DescriptorError) -> DescriptorSource {
        system.prepare(descriptor)
        let source = DescriptorSource(
            fileDescriptor: descriptor, events: interest.intersection(mask(of: descriptor)), origin: origin
        ) { [self] _, events in owner?.streamIsReady(for: events) }
        source.name = sourceName
        // The end of the loop also removes a source.
        source.removalHandler = { [unowned self] in owner?.streamLostItsLoop() }
        try loop.add(source, forMode: modes)
        return source
    }

    /// Returns the events for which a descriptor can be watched.
    private func mask(of descriptor: Int32) -> DescriptorEvents {
        var mask: DescriptorEvents = []
        if descriptor == input { mask.insert(.readable) }
        if descriptor == output { mask.insert(.writable) }
        return mask
    }

    private func interestChanged() {
        reader?.events = interest.intersection(mask(of: input))
        writer?.events = interest.intersection(mask(of: output))
    }

    func read(into room: UnsafeMutableRawBufferPointer) -> StreamResult {
        assert(!isClosed, "a stream is read after its end")
        let count = isSocket ? system.receive(input, into: room) : system.read(input, into: room)
        if count >= 0 { holds?.hasRead() }
        if count > 0 {
            meterReference?._withUnsafeGuaranteedRef { $0.addInput(count) }
            return .done(count)
        }
        if count == 0 { return .ended }
        // EIO means that the other side of a terminal has been closed.
        if errno == EIO && !isSocket { return .ended }
        return unmoved("read from the connection", errno)
    }

    func write(_ bytes: UnsafeRawBufferPointer) -> StreamResult {
        wrote(isSocket ? system.send(output, bytes) : system.write(output, bytes), of: bytes.count)
    }

    func write(gathering pieces: UnsafeBufferPointer<UnsafeRawBufferPointer>) -> StreamResult {
        guard isSocket else { return pieces.first { !$0.isEmpty }.map { write($0) } ?? .done(0) }
        let all = pieces.reduce(0) { $0 + $1.count }
        if all == 0 { return .done(0) }
        guard all <= Self.mostCopied else { return wrote(system.send(output, gathering: pieces), of: all) }
        return withUnsafeTemporaryAllocation(byteCount: all, alignment: 1) { room in
            var end = room.baseAddress!
            for piece in pieces where !piece.isEmpty {
                end.copyMemory(from: piece.baseAddress!, byteCount: piece.count)
                end += piece.count
            }
            return wrote(system.send(output, UnsafeRawBufferPointer(room)), of: all)
        }
    }

    /// The maximum number of bytes in pieces that are copied into one, which is faster than passing the system a list.
    private static var mostCopied: Int { 1024 }

    /// Returns the result of a call that has sent `count` bytes of `all`.
    private func wrote(_ count: Int, of all: Int) -> StreamResult {
        assert(!isClosed && count <= all, "a stream is written after its end, or more than there was")
        let reason = count < 0 ? errno : 0
        holds?.wrote(all: count == all)
        if count > 0 { meterReference?._withUnsafeGuaranteedRef { $0.addOutput(count) } }
        return count >= 0 ? .done(count) : unmoved("write to the connection", reason)
    }

    private func unmoved(_ operation: String, _ reason: Int32) -> StreamResult {
        if reason == EAGAIN || reason == EINTR { return .mustWait }
        failure = SystemError(operation, errno: reason)
        return .failed
    }

    func endWriting() -> StreamResult {
        assert(!isClosed, "the output of a stream ends after the stream")
        if isSocket {
            system.endWriting(output)
        } else if !isDuplex {
            closeOutput()
        }
        return .done(0)
    }

    /// Returns whether closing loses no output. A socket that closes with unread input, or receives input afterwards,
    /// is reset, and output that the peer's system does not yet have is lost.
    func mayClose(peerHasEnded: Bool) -> Bool {
        !isSocket || peerHasEnded || (unsentOutput == 0 && !system.hasInput(input))
    }

    var unsentOutput: Int { isSocket ? system.unsentOutput(output) : 0 }

    func leave() {
        assert(!isClosed, "a stream leaves its loop after its end")
        reader.map(end)
        writer.map(end)
        (reader, writer, owner, holds, meter) = (nil, nil, nil, nil, nil)
    }

    func holdForAnswer() -> (any TimeHold)? { isClient ? holds?.holdForAnswer() : nil }

    func close(_ ending: StreamEnding) {
        guard !isClosed else { return }
        isClosed = true
        if ending == .reset && isSocket { system.resetWhenClosed(output) }
        reader.map(end)
        if !isDuplex { closeOutput() }
        if input >= 0 { system.close(input) }
        (reader, owner, holds, meter) = (nil, nil, nil, nil)
    }

    private func closeOutput() {
        writer.map(end)
        if output >= 0 { system.close(output) }
        (writer, output) = (nil, -1)
    }

    private func end(_ source: DescriptorSource) {
        source.removalHandler = nil
        source.invalidate()
    }
}

extension RunLoop {
    /// Returns a stream that reads one descriptor and writes another, or the same one, and owns them from now on. Call
    /// it on the loop's thread; the stream is used there alone.
    ///
    /// - Parameters:
    ///   - input: a socket, a terminal, or the end of a pipe, which is made non-blocking; -1 for none.
    ///   - output: a descriptor as well; -1 for none.
    @_spi(Ports) public func makeStream(reading input: Int32, writing output: Int32) -> any ByteStream {
        DescriptorStream(input: input, output: output, WorldSystem.of(self))
    }
}
