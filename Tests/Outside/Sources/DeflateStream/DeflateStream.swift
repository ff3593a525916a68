internal import CZlib
@_spi(Ports) package import RunLoopKit
@_spi(Ports) package import RunLoopUnix

/// A stream that compresses what is written, and decompresses what is read, over another stream.
package final class DeflateStream: ByteStream {
    private let below: any ByteStream
    private let deflater = Deflater()
    private let inflater = Inflater()
    /// Compressed bytes that the lower stream has not taken yet.
    private var pending: ArraySlice<UInt8> = []
    /// Compressed bytes that have been read and are not decompressed yet.
    private var arrived: ArraySlice<UInt8> = []
    private var hasEndedBelow = false

    package var owner: (any StreamOwner)?
    package private(set) var failure: (any StreamFailure)?
    package private(set) var holdsInput = false
    package var interest: DescriptorEvents = [] {
        didSet { updateBelow() }
    }
    /// The number of bytes that the lower stream has taken.
    package private(set) var sentBytes = 0

    package init(over below: any ByteStream) {
        self.below = below
    }

    package var isOpen: Bool { below.isOpen }
    package var fileDescriptor: Int32 { below.fileDescriptor }
    package var name: String? {
        get { below.name }
        set { below.name = newValue }
    }

    package func open(
        on loop: RunLoop, inModes modes: RunLoop.Modes, origin: RunLoop.Origin, interest: DescriptorEvents
    ) throws(DescriptorError) {
        below.owner = self
        try below.open(on: loop, inModes: modes, origin: origin, interest: interest)
        self.interest = interest
    }

    private func updateBelow() {
        below.interest = pending.isEmpty ? interest : interest.union(.writable)
    }

    // MARK: Output

    package func write(_ bytes: UnsafeRawBufferPointer) -> StreamResult {
        switch flush() {
        case .done: break
        case let other: return other
        }
        let part = UnsafeRawBufferPointer(rebasing: bytes.prefix(64 * 1024))
        pending += deflater.deflate(part, Z_SYNC_FLUSH)
        if case .failed = flush() { return .failed }
        updateBelow()
        return .done(part.count)
    }

    /// Hands the compressed bytes to the lower stream; `done` if it has taken all.
    private func flush() -> StreamResult {
        while !pending.isEmpty {
            switch pending.withUnsafeBytes({ below.write($0) }) {
            case .done(let count):
                pending = pending.dropFirst(count)
                sentBytes += count
            case .failed:
                // Nothing waits to be written any more; the peer may have sent bytes before it closed.
                (failure, pending) = (below.failure, [])
                return .failed
            case let other: return other
            }
        }
        return failure == nil ? .done(0) : .failed
    }

    package func endWriting() -> StreamResult {
        if !deflater.hasEnded { pending += deflater.deflate(UnsafeRawBufferPointer(start: nil, count: 0), Z_FINISH) }
        let result = flush()
        guard case .done = result else {
            updateBelow()
            return result
        }
        return below.endWriting()
    }

    package func mayClose(peerHasEnded: Bool) -> Bool {
        pending.isEmpty && below.mayClose(peerHasEnded: peerHasEnded)
    }
    package var unsentOutput: Int { pending.count + below.unsentOutput }

    // MARK: Input

    package func read(into room: UnsafeMutableRawBufferPointer) -> StreamResult {
        while true {
            guard let count = inflater.inflate(&arrived, into: room) else {
                failure = DeflateError.damaged
                return .failed
            }
            holdsInput = count == room.count
            if count > 0 { return .done(count) }
            if inflater.hasEnded { return .ended }
            guard !hasEndedBelow else {
                failure = DeflateError.cutOff
                return .failed
            }
            var block = [UInt8](repeating: 0, count: 16 * 1024)
            switch block.withUnsafeMutableBytes({ below.read(into: $0) }) {
            case .done(let count): arrived = block[..<count]
            case .ended: hasEndedBelow = true
            case .mustWait: return .mustWait
            case .failed:
                failure = below.failure
                return .failed
            }
        }
    }

    // MARK: Ends

    package func leave() {
        owner = nil
        below.leave()
    }

    package func close(_ ending: StreamEnding) {
        owner = nil
        below.close(ending)
    }
}

extension DeflateStream: StreamOwner {
    package func streamOpened() {
        owner?.streamOpened()
    }

    package func streamIsReady(for events: DescriptorEvents) {
        if events.contains(.writable), case .failed = flush() {
            owner?.streamFailed()
            return
        }
        let wanted = pending.isEmpty ? interest : interest.subtracting(.writable)
        let ready = events.intersection(wanted)
        if !ready.isEmpty { owner?.streamIsReady(for: ready) }
        updateBelow()
    }

    package func streamFailed() {
        failure = below.failure
        owner?.streamFailed()
    }

    package func streamLostItsLoop() {
        owner?.streamLostItsLoop()
    }
}

package enum DeflateError: Error, Hashable {
    /// The input is not what such a stream writes.
    case damaged
    /// The peer has closed without an end.
    case cutOff
}

/// The output's side of zlib.
private final class Deflater {
    private var state = z_stream()
    private(set) var hasEnded = false

    init() {
        deflateInit_(&state, Z_DEFAULT_COMPRESSION, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size))
    }

    deinit {
        deflateEnd(&state)
    }

    func deflate(_ bytes: UnsafeRawBufferPointer, _ flush: Int32) -> [UInt8] {
        state.next_in = UnsafeMutablePointer(mutating: bytes.assumingMemoryBound(to: UInt8.self).baseAddress)
        state.avail_in = UInt32(bytes.count)
        var output: [UInt8] = []
        var block = [UInt8](repeating: 0, count: 16 * 1024)
        repeat {
            block.withUnsafeMutableBufferPointer { block in
                (state.next_out, state.avail_out) = (block.baseAddress, UInt32(block.count))
                _ = CZlib.deflate(&state, flush)
            }
            output += block.dropLast(Int(state.avail_out))
        } while state.avail_out == 0
        hasEnded = flush == Z_FINISH
        return output
    }
}

/// The input's side of zlib.
private final class Inflater {
    private var state = z_stream()
    private(set) var hasEnded = false

    init() {
        inflateInit_(&state, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size))
    }

    deinit {
        inflateEnd(&state)
    }

    /// Returns the number of bytes that are in `room` now, after taking what was needed for them; `nil` if the bytes
    /// are no compressed stream.
    func inflate(_ bytes: inout ArraySlice<UInt8>, into room: UnsafeMutableRawBufferPointer) -> Int? {
        guard !hasEnded else { return 0 }
        let left: Int? = bytes.withUnsafeMutableBufferPointer { input in
            (state.next_in, state.avail_in) = (input.baseAddress, UInt32(input.count))
            state.next_out = room.assumingMemoryBound(to: UInt8.self).baseAddress
            state.avail_out = UInt32(clamping: room.count)
            switch CZlib.inflate(&state, Z_NO_FLUSH) {
            case Z_STREAM_END: hasEnded = true
            case Z_OK, Z_BUF_ERROR: break
            default: return nil
            }
            return Int(state.avail_in)
        }
        guard let left else { return nil }
        bytes = bytes.suffix(left)
        return room.count - Int(state.avail_out)
    }
}
