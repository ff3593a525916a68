internal import CShims
internal import Glibc
internal import RunLoopKit

/// One direction of a relay, from one stream to another.
final class RelayDirection {
    private enum Input {
        /// The source may have input.
        case ready
        /// The source has none for now, and will report some.
        case awaited
        case ended
    }

    private enum Delivery {
        case accepted
        /// The sink accepts nothing for now, and will report when it does.
        case blocked
        /// All bytes and the end have been delivered, or the sink has failed and all bytes have been discarded.
        case ended
    }

    private let source: any ByteStream
    private let sink: any ByteStream
    /// The received bytes in memory that have not been delivered; bytes in the pipe follow them.
    private var buffer: ByteBuffer?
    private let pool: BufferPool
    /// The pipe, created after the first large piece.
    private(set) var pipe: SplicePipe?
    private var maySplice: Bool
    /// The number of further pieces that go through the pipe.
    private var splices = 0

    /// The number of delivered bytes.
    private(set) var count = 0
    private var input: Input
    private var delivery = Delivery.accepted
    /// The error of a sink that has closed without a reset. The other direction continues, because the sink may have
    /// sent bytes before; further bytes for the sink are discarded.
    private(set) var sinkFailure: (any StreamFailure)?
    private var discarded = 0

    /// The size in bytes from which moving a piece in the kernel is cheaper than copying it.
    private static let largePiece = 16 * 1024
    /// The number of pieces after a large one that also go through the pipe, because the pieces of a stream differ in
    /// size.
    private static let piecesThroughPipe = 16
    /// The number of bytes that may be moved before other items have their turn.
    private static let turn = 1024 * 1024

    init(from: HandedOver, to: HandedOver, usesKernel: Bool, _ pool: BufferPool) {
        source = from.stream
        sink = to.stream
        self.pool = pool
        // Bytes already waiting for the sink go first.
        for bytes in [to.output, from.input] {
            guard let bytes, !bytes.isEmpty else { continue }
            let buffer = self.buffer ?? pool.take()
            buffer.append(bytes.bytes)
            self.buffer = buffer
        }
        maySplice = usesKernel
        input = from.hasPeerEnded ? .ended : .ready
    }

    private var isEmpty: Bool { buffer == nil && pipe?.isEmpty != false }

    /// True if the direction may read more, which it does only after delivering all buffered bytes.
    var wantsInput: Bool { input != .ended && isEmpty && source.isOpen }
    /// True if the sink accepts nothing for now.
    var isBlocked: Bool { delivery == .blocked }
    /// True once the direction has nothing left to do.
    var hasEnded: Bool { delivery == .ended }

    /// Notes that the source may have input.
    func sourceIsReady() {
        if input == .awaited { input = .ready }
    }

    /// Notes that the sink accepts more.
    func sinkIsReady() {
        if delivery == .blocked { delivery = .accepted }
    }

    /// Moves as many bytes as a turn allows, and returns any failure that ends the relay.
    func move() -> (any StreamFailure)? {
        let goal = count + discarded + Self.turn
        // The end and the source's held input move in the same turn, because no event would request another.
        while !hasEnded && (count + discarded < goal || (isEmpty && (input == .ended || source.holdsInput))) {
            if wantsInput && (input == .ready || source.holdsInput), let failure = fill() { return failure }
            guard !isEmpty || input == .ended, sink.isOpen, !isBlocked else { return nil }
            if let failure = isEmpty ? endSink() : drain() { return failure }
            guard !isEmpty || input != .awaited || source.holdsInput else { return nil }
        }
        return nil
    }

    private func fill() -> (any StreamFailure)? {
        assert(isEmpty && input != .ended, "input is read before earlier input has gone, or after its end")
        if splices > 0 && pipe == nil {
            pipe = SplicePipe()
            if pipe == nil { (maySplice, splices) = (false, 0) }
        }
        let spliced = splices > 0 ? pipe?.fill(from: source.fileDescriptor) : nil
        switch spliced ?? fillBuffer() {
        // A shorter read has emptied the source; more input is reported again.
        case .done(let moved):
            input = moved >= BufferPool.size ? .ready : .awaited
            if maySplice { splices = moved >= Self.largePiece ? Self.piecesThroughPipe : max(0, splices - 1) }
        case .mustWait: input = .awaited
        case .ended: input = .ended
        case .failed: return source.failure ?? SystemError("relay from a connection", errno: errno)
        }
        return nil
    }

    private func fillBuffer() -> StreamResult {
        let buffer = pool.take()
        let result = buffer.fill(room: BufferPool.size, from: source)
        if buffer.isEmpty { pool.put(buffer) } else { self.buffer = buffer }
        return result
    }

    private func drain() -> (any StreamFailure)? {
        assert(!isEmpty, "there is nothing to send")
        guard sinkFailure == nil else {
            discard()
            return nil
        }
        let result = buffer.map { sink.write($0.bytes) } ?? pipe!.drain(to: sink.fileDescriptor)
        switch result {
        case .done(let moved):
            count += moved
            if let buffer {
                buffer.discard(moved)
                if buffer.isEmpty {
                    self.buffer = nil
                    pool.put(buffer)
                }
            }
            if !isEmpty { delivery = .blocked }
        case .mustWait: delivery = .blocked
        case .ended, .failed: return sinkHasFailed()
        }
        return nil
    }

    private func endSink() -> (any StreamFailure)? {
        assert(isEmpty && input == .ended, "a relay ends before its source, or before its bytes have gone")
        guard sinkFailure == nil else {
            delivery = .ended
            return nil
        }
        switch sink.endWriting() {
        case .done, .ended: delivery = .ended
        case .mustWait: delivery = .blocked
        case .failed: return sinkHasFailed()
        }
        return nil
    }

    /// - Returns: the failure, unless the sink has only closed. A reset sink has ended in the middle of a transfer.
    private func sinkHasFailed() -> (any StreamFailure)? {
        let failure: any StreamFailure = sink.failure ?? SystemError("relay to a connection", errno: errno)
        guard (failure as? SystemError)?.errno == EPIPE else { return failure }
        sinkFailure = failure
        discard()
        return nil
    }

    private func discard() {
        if let buffer {
            discarded += buffer.count
            pool.put(buffer)
        }
        (buffer, pipe, delivery) = (nil, nil, .accepted)
        (maySplice, splices) = (false, 0)
    }
}

/// A pipe through which the kernel moves bytes from one socket to another.
final class SplicePipe {
    private let ends: (out: Int32, into: Int32)
    private var count = 0

    private static let capacity = 256 * 1024

    /// Creates a pipe; `nil` if no descriptor is left.
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
        assert(descriptor >= 0 && count == 0, "a pipe is filled that is not empty")
        let result = outcome(rlk_splice(descriptor, ends.into, Self.capacity))
        if case .done(let moved) = result { count += moved }
        return result
    }

    func drain(to descriptor: Int32) -> StreamResult {
        assert(count > 0, "an empty pipe is drained")
        let result = outcome(rlk_splice_quietly(ends.out, descriptor, count))
        if case .done(let moved) = result { count -= moved }
        assert(count >= 0, "more has left a pipe than was in it")
        return result
    }

    private func outcome(_ moved: Int) -> StreamResult {
        if moved > 0 { return .done(moved) }
        if moved == 0 { return .ended }
        return errno == EAGAIN || errno == EINTR ? .mustWait : .failed
    }
}
