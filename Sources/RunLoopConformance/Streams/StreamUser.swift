@_spi(Ports) internal import RunLoopKit
@_spi(Ports) internal import RunLoopUnix
internal import Testing

/// The owner of a stream in a check. Like a connection, it reads arriving bytes and sends given ones.
final class StreamUser: StreamOwner {
    enum Event: Equatable {
        case opened, ready(DescriptorEvents), failed, lostLoop
    }

    let stream: any ByteStream
    /// The events since the check has last cleared them.
    var events: [Event] = []
    private(set) var received: [UInt8] = []
    /// The result that ended reading.
    private(set) var inputEnd: StreamResult?
    /// The result that ended writing.
    private(set) var outputEnd: StreamResult?
    private var output: ArraySlice<UInt8> = []
    private var endsOutput = false
    private var isWatched = false

    /// The number of bytes that one call may read.
    var room = 4096
    /// True if bytes are sent in pieces.
    var gathers = false
    /// True if the user waits for input.
    var reads = true {
        didSet {
            if reads && stream.holdsInput { receive() }
            updateInterest()
        }
    }
    /// False if the user ignores readiness.
    var takes = true
    /// The events to wait for in place of those that the user needs.
    var fixedInterest: DescriptorEvents? {
        didSet { updateInterest() }
    }

    init(_ stream: any ByteStream) {
        self.stream = stream
    }

    func open(on loop: RunLoop, inModes modes: RunLoop.Modes = .default) throws {
        stream.owner = self
        try stream.open(
            on: loop, inModes: modes, origin: RunLoop.Origin(file: #fileID, line: #line), interest: interest)
        isWatched = true
        send()
    }

    func leave() {
        isWatched = false
        stream.leave()
    }

    func close(_ ending: StreamEnding) {
        isWatched = false
        stream.close(ending)
    }

    private var interest: DescriptorEvents {
        if let fixedInterest { return fixedInterest }
        var events: DescriptorEvents = []
        if reads && inputEnd == nil { events.insert(.readable) }
        if stream.isOpen && outputEnd == nil && (endsOutput || hasOutput) { events.insert(.writable) }
        return events
    }

    private func updateInterest() {
        if isWatched && stream.interest != interest { stream.interest = interest }
    }

    // MARK: Output

    /// True if the stream has not taken all bytes.
    var hasOutput: Bool { !output.isEmpty }

    func write(_ bytes: [UInt8]) {
        output += bytes
        send()
    }

    /// Ends the output once everything has been sent.
    func finish() {
        endsOutput = true
        send()
    }

    private func send() {
        defer { updateInterest() }
        guard isWatched, stream.isOpen, outputEnd == nil else { return }
        while hasOutput {
            switch sendPiece() {
            case .done(let count): output = output.dropFirst(count)
            case .mustWait: return
            case let end: return outputEnd = end
            }
        }
        guard endsOutput else { return }
        let result = stream.endWriting()
        if result != .mustWait { outputEnd = result }
    }

    /// Sends bytes that are at another address in each call.
    private func sendPiece() -> StreamResult {
        let piece = Array(output.prefix(100_000))
        let result = piece.withUnsafeBytes { bytes in
            guard gathers else { return stream.write(bytes) }
            let (first, rest) = (bytes.prefix(bytes.count / 3), bytes.dropFirst(bytes.count / 3))
            let pieces = [rest.prefix(0), first, rest.prefix(0), rest].map { UnsafeRawBufferPointer(rebasing: $0) }
            return pieces.withUnsafeBufferPointer { stream.write(gathering: $0) }
        }
        if case .done(let count) = result {
            #expect(count > 0 && count <= piece.count, "a write of \(piece.count) bytes has sent \(count)")
        }
        #expect(result != .ended, "a write has found the end of the input")
        return result
    }

    // MARK: Input

    private func receive() {
        repeat {
            var block = [UInt8](repeating: 0, count: room)
            let result = block.withUnsafeMutableBytes { stream.read(into: $0) }
            switch result {
            case .done(let count):
                #expect(count > 0 && count <= room, "a read into \(room) bytes has read \(count)")
                received += block[..<count]
            case .mustWait: return
            case .ended, .failed: inputEnd = result
            }
        } while stream.holdsInput && inputEnd == nil
    }

    // MARK: Events

    func streamOpened() {
        events.append(.opened)
        #expect(stream.isOpen, "a stream says that it is open before it is")
        send()
    }

    func streamIsReady(for ready: DescriptorEvents) {
        events.append(.ready(ready))
        #expect(stream.isOpen, "a stream is ready before it is open")
        #expect(!ready.isEmpty && ready.isSubset(of: stream.interest), "ready for what nobody waits for: \(ready)")
        guard takes else { return }
        if ready.contains(.readable) { receive() }
        if ready.contains(.writable) { send() }
        updateInterest()
    }

    func streamFailed() {
        events.append(.failed)
        inputEnd = .failed
        updateInterest()
    }

    func streamLostItsLoop() {
        events.append(.lostLoop)
        close(.incomplete)
    }
}
