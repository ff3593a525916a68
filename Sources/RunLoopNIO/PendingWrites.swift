#if Adapters
internal import Glibc
internal import NIOCore
@_spi(Ports) internal import RunLoopUnix

/// The output of a channel, from `write` until the stream has accepted it.
///
/// The queue is read in place, because each copy of a write retains its bytes and its promise, and SwiftNIO's
/// `MarkedCircularBuffer` copies a write each time it is read.
struct PendingWrites {
    private struct Write {
        var data: IOData
        /// The number of bytes still to be sent.
        var rest: Int
        let promise: EventLoopPromise<Void>?
    }

    /// The result of handing output to a stream.
    enum Progress {
        /// The stream has accepted everything offered.
        case complete
        /// The stream has accepted a part, and may accept more.
        case partial
        /// The stream accepts no more for now.
        case blocked
        case failed
    }

    private var writes: ContiguousArray<Write> = []
    /// The index of the first unsent write. The elements before it are empty.
    private var head = 0
    /// The index after the last flushed write.
    private var flushed = 0
    /// The number of waiting bytes, flushed or not.
    private(set) var bytes = 0
    /// The number of writes with a promise.
    private var promises = 0

    private static let nothing = Write(data: .byteBuffer(ByteBuffer()), rest: 0, promise: nil)
    /// The maximum number of pieces sent together, and of writes whose memory is kept for reuse.
    private static let mostPieces = 64
    /// The maximum number of bytes read from a file at a time.
    private static let mostOfFile = 64 * 1024

    var isEmpty: Bool { head == writes.count }
    var hasPromises: Bool { promises > 0 }
    var hasFlushed: Bool { head < flushed }

    mutating func add(_ data: consuming IOData, _ promise: EventLoopPromise<Void>?) {
        let count = data.readableBytes
        writes.append(Write(data: consume data, rest: count, promise: promise))
        bytes += count
        if promise != nil { promises += 1 }
    }

    mutating func flush() { flushed = writes.count }

    /// Hands flushed output to the stream once.
    ///
    /// - Parameter completed: receives the promises of writes that the stream has accepted completely; the caller
    ///   fulfils them once its own state is consistent.
    mutating func write(to stream: any ByteStream, completed: inout [EventLoopPromise<Void>]) -> Progress {
        guard hasFlushed else { return .complete }
        var (offered, count) = (writes[head].rest, 1)
        let result: StreamResult
        switch writes[head].data {
        case .byteBuffer(let buffer) where flushed - head == 1:
            result = buffer.withUnsafeReadableBytes { $0.isEmpty ? .done(0) : stream.write($0) }
        case .byteBuffer: (result, offered, count) = writeGathered(to: stream)
        case .fileRegion(let region): result = writePart(of: region, to: stream)
        }
        switch result {
        case .done(let written):
            take(written, ofFirst: count, &completed)
            return written == offered ? .complete : .partial
        case .mustWait: return .blocked
        case .ended, .failed: return .failed
        }
    }

    private func writeGathered(to stream: any ByteStream) -> (result: StreamResult, offered: Int, count: Int) {
        let most = min(flushed - head, Self.mostPieces)
        return withUnsafeTemporaryAllocation(of: UnsafeRawBufferPointer.self, capacity: most) { pieces in
            var (offered, count) = (0, 0)
            while count < most, case .byteBuffer(let buffer) = writes[head + count].data {
                // The bytes do not move after the closure, because `writes` keeps their storage.
                buffer.withUnsafeReadableBytes { pieces.initializeElement(at: count, to: $0) }
                offered += writes[head + count].rest
                count += 1
            }
            let result = stream.write(gathering: UnsafeBufferPointer(rebasing: pieces.prefix(count)))
            return (result, offered, count)
        }
    }

    /// Writes the next bytes of a file. Bytes that the stream does not accept are read again.
    private func writePart(of region: FileRegion, to stream: any ByteStream) -> StreamResult {
        let wanted = min(Self.mostOfFile, region.readableBytes)
        guard wanted > 0 else { return .done(0) }
        return withUnsafeTemporaryAllocation(byteCount: wanted, alignment: 1) { room in
            let read = try? region.fileHandle.withUnsafeFileDescriptor { descriptor in
                pread(descriptor, room.baseAddress, wanted, off_t(region.readerIndex))
            }
            // Bytes missing from the file cannot be replaced.
            guard let read, read > 0 else { return .failed }
            return stream.write(UnsafeRawBufferPointer(rebasing: room.prefix(read)))
        }
    }

    /// Removes output that the stream has accepted.
    private mutating func take(_ count: Int, ofFirst offered: Int, _ completed: inout [EventLoopPromise<Void>]) {
        var rest = count
        bytes -= count
        let first = head
        while head < first + offered, rest >= writes[head].rest {
            rest -= writes[head].rest
            if let promise = writes[head].promise {
                completed.append(promise)
                promises -= 1
            }
            head += 1
        }
        if head < first + offered {
            writes[head].rest -= rest
            writes[head].data.moveReaderIndex(forwardBy: rest)
        }
        letGo(since: first)
    }

    /// Releases the writes before the first unsent one.
    private mutating func letGo(since first: Int) {
        if head == writes.count {
            // Nearly always there is one write, for which `removeAll` takes 119 instructions instead of 32.
            if head == 1 { writes.removeLast() } else { writes.removeAll(keepingCapacity: head <= Self.mostPieces) }
            (head, flushed) = (0, 0)
        } else if head >= Self.mostPieces, head > writes.count / 2 {
            writes.removeFirst(head)
            (head, flushed) = (0, flushed - head)
        } else {
            for place in first..<head { writes[place] = Self.nothing }
        }
    }

    /// Removes all writes, and returns their promises.
    mutating func removeAll() -> [EventLoopPromise<Void>] {
        defer { self = PendingWrites() }
        return writes[head...].compactMap(\.promise)
    }
}
#endif
