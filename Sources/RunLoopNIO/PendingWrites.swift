#if Adapters
internal import Glibc
internal import NIOCore
internal import RunLoopUnix

/// The output of a channel, from `write` until the stream has taken it.
///
/// Its queue is read in place: each copy of a write counts references to its bytes and its promise, and SwiftNIO's
/// `MarkedCircularBuffer` makes one for each look at a write.
struct PendingWrites {
    private struct Write {
        var data: IOData
        /// The number of bytes that are still to be sent.
        var rest: Int
        let promise: EventLoopPromise<Void>?
    }

    /// The result of handing output to a stream.
    enum Progress {
        /// All that was offered is written.
        case complete
        /// The stream has taken some, and may take more.
        case partial
        /// The stream takes no more for now.
        case blocked
        case failed
    }

    private var writes: ContiguousArray<Write> = []
    /// The place of the first write that is still to be sent. The places before it hold nothing.
    private var head = 0
    /// The place behind the last write that is flushed.
    private var flushed = 0
    /// The number of bytes that wait, flushed or not.
    private(set) var bytes = 0
    /// The number of writes with a promise.
    private var promises = 0

    private static let nothing = Write(data: .byteBuffer(ByteBuffer()), rest: 0, promise: nil)
    /// The most pieces that are sent together, and the most writes whose memory is kept for the next ones.
    private static let mostPieces = 64
    /// The most bytes of a file that are read at a time.
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
    /// - Parameter completed: receives the promises of writes of which the stream has all bytes, for the caller to
    ///   fulfil when its own state is in order.
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
                // The bytes stay where they are after the closure: `writes` keeps their storage.
                buffer.withUnsafeReadableBytes { pieces.initializeElement(at: count, to: $0) }
                offered += writes[head + count].rest
                count += 1
            }
            let result = stream.write(gathering: UnsafeBufferPointer(rebasing: pieces.prefix(count)))
            return (result, offered, count)
        }
    }

    /// Writes the next bytes of a file, which are read anew if the stream does not take them.
    private func writePart(of region: FileRegion, to stream: any ByteStream) -> StreamResult {
        let wanted = min(Self.mostOfFile, region.readableBytes)
        guard wanted > 0 else { return .done(0) }
        return withUnsafeTemporaryAllocation(byteCount: wanted, alignment: 1) { room in
            let read = try? region.fileHandle.withUnsafeFileDescriptor { descriptor in
                pread(descriptor, room.baseAddress, wanted, off_t(region.readerIndex))
            }
            // Nothing can take the place of bytes that the file does not have.
            guard let read, read > 0 else { return .failed }
            return stream.write(UnsafeRawBufferPointer(rebasing: room.prefix(read)))
        }
    }

    /// Removes output that the stream has taken.
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

    /// Releases the writes before the first one that is still to be sent.
    private mutating func letGo(since first: Int) {
        if head == writes.count {
            // There is one nearly always, and `removeAll` takes 119 instructions in place of 32.
            if head == 1 { writes.removeLast() } else { writes.removeAll(keepingCapacity: head <= Self.mostPieces) }
            (head, flushed) = (0, 0)
        } else if head >= Self.mostPieces, head > writes.count / 2 {
            writes.removeFirst(head)
            (head, flushed) = (0, flushed - head)
        } else {
            for place in first..<head { writes[place] = Self.nothing }
        }
    }

    /// Removes everything, and returns the promises.
    mutating func removeAll() -> [EventLoopPromise<Void>] {
        defer { self = PendingWrites() }
        return writes[head...].compactMap(\.promise)
    }
}
#endif
