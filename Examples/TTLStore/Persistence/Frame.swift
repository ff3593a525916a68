/// The layout of changes in a file: a line that names the kind of the file, and then frames.
///
/// A frame has a head of twelve bytes: the length of its changes, their checksum, and the checksum of those two
/// numbers. The checksum of the changes continues the previous frame's, so that no frame can be missing or out of
/// order.
enum Frame {
    static let headSize = 12

    enum Kind: String {
        /// All keys at some time, ended by a frame without changes.
        case snapshot = "TTLSTORE snapshot 2\n"
        /// All changes, one after another, up to the end of the last write.
        case log = "TTLSTORE log 2\n"
    }

    static func head(length: Int, sum: UInt32) -> [UInt8] {
        var head: [UInt8] = []
        for number in [UInt32(length), sum] { withUnsafeBytes(of: number.littleEndian) { head += $0 } }
        let own = head.withUnsafeBytes { Checksum.of($0) }
        withUnsafeBytes(of: own.littleEndian) { head += $0 }
        return head
    }

    /// The extent of a file's frames.
    struct Extent {
        /// The end of the complete frames.
        var end: Int
        /// The checksum of the last frame.
        var sum: UInt32 = 0
    }

    /// The place from which a file cannot be understood.
    struct Broken: Error, Equatable {
        let offset: Int
    }

    /// Calls the body with all changes in a file.
    ///
    /// - Throws: ``Broken`` if the file is of another kind, or is damaged. An incomplete last frame of a log, cut off
    ///   with the program or the machine, is no damage.
    static func read(
        _ bytes: UnsafeRawBufferPointer, _ kind: Kind, _ body: (Store.Change) -> Void
    ) throws(Broken) -> Extent {
        let name = Array(kind.rawValue.utf8)
        guard bytes.starts(with: name) else { throw Broken(offset: 0) }
        var extent = Extent(end: name.count)
        while true {
            let rest = UnsafeRawBufferPointer(rebasing: bytes[extent.end...])
            if rest.isEmpty, kind == .log { return extent }
            switch parse(rest, extent.sum) {
            case .end where kind == .snapshot && rest.count == headSize:
                extent.end = bytes.count
                return extent
            case .changes(let range, let sum):
                guard Record.read(UnsafeRawBufferPointer(rebasing: rest[range]), body) else {
                    throw Broken(offset: extent.end)
                }
                (extent.end, extent.sum) = (extent.end + range.upperBound, sum)
            case .torn where kind == .log: return extent
            default: throw Broken(offset: extent.end)
            }
        }
    }

    private enum Finding {
        case changes(Range<Int>, sum: UInt32)
        case end, torn, broken
    }

    private static func parse(_ rest: UnsafeRawBufferPointer, _ previous: UInt32) -> Finding {
        guard rest.count >= headSize else { return .torn }
        func number(_ offset: Int) -> UInt32 {
            UInt32(littleEndian: rest.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
        }
        // After a loss of power the file may be longer than the data written to it: then zeros follow.
        func isLast(_ end: Int) -> Bool { rest[end...].allSatisfy { $0 == 0 } }
        guard number(8) == Checksum.of(UnsafeRawBufferPointer(rebasing: rest[..<8])) else {
            return isLast(headSize) ? .torn : .broken
        }
        let (end, overflow) = headSize.addingReportingOverflow(Int(number(0)))
        guard !overflow, end <= rest.count else { return .torn }
        guard end > headSize else { return number(4) == previous ? .end : .broken }
        let sum = Checksum.of(UnsafeRawBufferPointer(rebasing: rest[headSize..<end]), after: previous)
        guard sum == number(4) else { return isLast(end) ? .torn : .broken }
        return .changes(headSize..<end, sum: sum)
    }
}
