internal import CShims
internal import Glibc
internal import RunLoopKit

/// One direction of a relay: what comes from one stream goes to another.
final class RelayDirection {
    private let source: any ByteStream
    private let sink: any ByteStream
    /// What has come and not gone yet: in memory, and behind it in the kernel.
    private let buffer: ByteBuffer
    private var pipe: SplicePipe?

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
    /// What may be moved before others have their turn.
    private static let turn = 1024 * 1024

    init(from: HandedOver, to: HandedOver, usesKernel: Bool) {
        source = from.stream
        sink = to.stream
        // What waits for the sink already goes first.
        buffer = ByteBuffer(capacity: Self.capacity)
        for bytes in [to.output, from.input] { if let bytes { buffer.append(bytes.bytes) } }
        pipe = usesKernel ? SplicePipe() : nil
        hasSourceEnded = from.hasPeerEnded
    }

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
        let result = pipe?.fill(from: source.fileDescriptor) ?? buffer.fill(room: Self.capacity, from: source)
        switch result {
        // Less than that was all there was; more is reported again.
        case .done(let moved): mayRead = moved >= Self.capacity
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
        let result = move(descriptor, ends.into, Self.capacity)
        if case .done(let moved) = result { count += moved }
        return result
    }

    func drain(to descriptor: Int32) -> StreamResult {
        let result = move(ends.out, descriptor, count)
        if case .done(let moved) = result { count -= moved }
        return result
    }

    private func move(_ from: Int32, _ to: Int32, _ most: Int) -> StreamResult {
        let moved = rlk_splice_quietly(from, to, most)
        if moved > 0 { return .done(moved) }
        if moved == 0 { return .ended }
        return errno == EAGAIN || errno == EINTR ? .mustWait : .failed
    }
}
