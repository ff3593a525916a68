internal import CShims
internal import Glibc
internal import RunLoopKit

/// One direction of a relay: what comes from one stream goes to another.
final class RelayDirection {
    private let source: any ByteStream
    private let sink: any ByteStream
    /// What has come and not gone yet: in memory, and behind it in the kernel.
    private let buffer: ByteBuffer
    /// Made when the first large piece has come.
    private var pipe: SplicePipe?
    private var maySplice: Bool
    /// How many of the next pieces go through the pipe.
    private var splices = 0

    /// How many bytes have gone.
    private(set) var count = 0
    /// The sink takes nothing for now.
    var isBlocked = false
    /// The source may have something.
    var mayRead = true
    private var hasSourceEnded: Bool
    /// Everything has gone, and the sink knows that this was all.
    private(set) var hasEnded = false

    private static let capacity = 64 * 1024
    /// A piece that the kernel moves for less than it takes to copy it.
    private static let largePiece = 16 * 1024
    /// How many pieces that follow a large one go through the pipe, too: the pieces of a stream differ in size.
    private static let piecesThroughPipe = 16
    /// What may be moved before others have their turn.
    private static let turn = 1024 * 1024

    init(from: HandedOver, to: HandedOver, usesKernel: Bool) {
        source = from.stream
        sink = to.stream
        // What waits for the sink already goes first.
        buffer = ByteBuffer(capacity: Self.capacity)
        for bytes in [to.output, from.input] { if let bytes { buffer.append(bytes.bytes) } }
        maySplice = usesKernel
        hasSourceEnded = from.hasPeerEnded
    }

    /// Whether large pieces have come that the kernel moves.
    var hasPipe: Bool { pipe != nil }

    private var isEmpty: Bool { buffer.isEmpty && pipe?.isEmpty != false }

    /// Whether more may come: what is there has gone first.
    var wantsInput: Bool { !hasSourceEnded && isEmpty && source.isOpen }

    /// Moves what can be moved in a turn.
    ///
    /// - Returns: why nothing goes on any more.
    func move() -> (any StreamFailure)? {
        let goal = count + Self.turn
        // The end, and what the source holds, go in the same turn: nothing would come any more that asks for another.
        while !hasEnded && (count < goal || (isEmpty && (hasSourceEnded || source.holdsInput))) {
            if wantsInput && (mayRead || source.holdsInput), let failure = fill() { return failure }
            guard !isEmpty || hasSourceEnded, sink.isOpen, !isBlocked else { return nil }
            if let failure = isEmpty ? endSink() : drain() { return failure }
            guard !isEmpty || hasSourceEnded || mayRead || source.holdsInput else { return nil }
        }
        return nil
    }

    private func fill() -> (any StreamFailure)? {
        if splices > 0 && pipe == nil {
            pipe = SplicePipe()
            if pipe == nil { (maySplice, splices) = (false, 0) }
        }
        let spliced = splices > 0 ? pipe?.fill(from: source.fileDescriptor) : nil
        switch spliced ?? buffer.fill(room: Self.capacity, from: source) {
        // Less than that was all there was; more is reported again.
        case .done(let moved):
            mayRead = moved >= Self.capacity
            if maySplice { splices = moved >= Self.largePiece ? Self.piecesThroughPipe : max(0, splices - 1) }
        case .mustWait: mayRead = false
        case .ended: hasSourceEnded = true
        case .failed: return source.failure ?? SystemError("relay from a connection", errno: errno)
        }
        return nil
    }

    private func drain() -> (any StreamFailure)? {
        let isInMemory = !buffer.isEmpty
        let result = isInMemory ? sink.write(buffer.bytes) : pipe!.drain(to: sink.fileDescriptor)
        switch result {
        case .done(let moved):
            count += moved
            if isInMemory { buffer.discard(moved) }
            isBlocked = !isEmpty
        case .mustWait: isBlocked = true
        case .ended, .failed: return sink.failure ?? SystemError("relay to a connection", errno: errno)
        }
        return nil
    }

    private func endSink() -> (any StreamFailure)? {
        switch sink.endWriting() {
        case .done, .ended: hasEnded = true
        case .mustWait: isBlocked = true
        case .failed: return sink.failure ?? SystemError("relay to a connection", errno: errno)
        }
        return nil
    }
}

/// A pipe through which the kernel moves bytes from one socket to another.
final class SplicePipe {
    private let ends: (out: Int32, into: Int32)
    private var count = 0

    private static let capacity = 256 * 1024

    /// `nil` if no descriptor is left.
    init?() {
        var ends: [Int32] = [-1, -1]
        guard rlk_splice_pipe(&ends, Int32(Self.capacity)) == 0 else { return nil }
        self.ends = (ends[0], ends[1])
    }

    deinit {
        close(ends.out)
        close(ends.into)
    }

    var isEmpty: Bool { count == 0 }

    func fill(from descriptor: Int32) -> StreamResult {
        let result = outcome(rlk_splice(descriptor, ends.into, Self.capacity))
        if case .done(let moved) = result { count += moved }
        return result
    }

    func drain(to descriptor: Int32) -> StreamResult {
        let result = outcome(rlk_splice_quietly(ends.out, descriptor, count))
        if case .done(let moved) = result { count -= moved }
        return result
    }

    private func outcome(_ moved: Int) -> StreamResult {
        if moved > 0 { return .done(moved) }
        if moved == 0 { return .ended }
        return errno == EAGAIN || errno == EINTR ? .mustWait : .failed
    }
}
