#if Adapters
internal import Glibc
internal import NIOCore
internal import RunLoopUnix

/// The output of a channel, from `write` until the stream has taken it.
struct PendingWrites {
    private struct Write {
        var data: IOData
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

    private var writes = MarkedCircularBuffer<Write>(initialCapacity: 4)
    /// The number of bytes that wait, flushed or not.
    private(set) var bytes = 0

    /// The most pieces that are sent together.
    private static let mostPieces = 64
    /// The most bytes of a file that are read at a time.
    private static let mostOfFile = 64 * 1024

    var isEmpty: Bool { writes.isEmpty }
    var hasFlushed: Bool { writes.hasMark }

    mutating func add(_ data: IOData, _ promise: EventLoopPromise<Void>?) {
        writes.append(Write(data: data, promise: promise))
        bytes += data.readableBytes
    }

    mutating func flush() { writes.mark() }

    /// Hands flushed output to the stream once.
    ///
    /// - Parameter completed: receives the promises of writes of which the stream has all bytes, for the caller to
    ///   fulfil when its own state is in order.
    mutating func write(to stream: any ByteStream, completed: inout [EventLoopPromise<Void>]) -> Progress {
        guard let mark = writes.markedElementIndex, let first = writes.first else { return .complete }
        let flushed = writes.distance(from: writes.startIndex, to: mark) + 1
        var (offered, count) = (first.data.readableBytes, 1)
        let result: StreamResult
        switch first.data {
        case .byteBuffer(let buffer) where flushed == 1:
            result = buffer.withUnsafeReadableBytes { $0.isEmpty ? .done(0) : stream.write($0) }
        case .byteBuffer: (result, offered, count) = writeGathered(flushed, to: stream)
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

    private func writeGathered(
        _ flushed: Int, to stream: any ByteStream
    ) -> (result: StreamResult, offered: Int, count: Int) {
        let most = min(flushed, Self.mostPieces)
        return withUnsafeTemporaryAllocation(of: UnsafeRawBufferPointer.self, capacity: most) { pieces in
            var (offered, count) = (0, 0)
            for offset in 0..<most {
                let data = writes[writes.index(writes.startIndex, offsetBy: offset)].data
                guard case .byteBuffer(let buffer) = data else { break }
                // The bytes stay where they are after the closure: `writes` keeps their storage.
                buffer.withUnsafeReadableBytes { pieces.initializeElement(at: offset, to: $0) }
                offered += buffer.readableBytes
                count += 1
            }
            let result = withExtendedLifetime(writes) {
                stream.write(gathering: UnsafeBufferPointer(rebasing: pieces.prefix(count)))
            }
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
    private mutating func take(_ count: Int, ofFirst flushed: Int, _ completed: inout [EventLoopPromise<Void>]) {
        var rest = count
        bytes -= count
        for _ in 0..<flushed {
            let first = writes.first!
            guard rest >= first.data.readableBytes else {
                writes[writes.startIndex].data.moveReaderIndex(forwardBy: rest)
                return
            }
            rest -= first.data.readableBytes
            if let promise = writes.removeFirst().promise { completed.append(promise) }
        }
    }

    /// Removes everything, and returns the promises.
    mutating func removeAll() -> [EventLoopPromise<Void>] {
        var promises: [EventLoopPromise<Void>] = []
        while let write = writes.popFirst() {
            if let promise = write.promise { promises.append(promise) }
        }
        bytes = 0
        return promises
    }
}
#endif
