internal import Glibc

/// A record in the form that the system writes into the buffer of a read.
struct InotifyRecord: Equatable {
    var watch: Int32
    var mask: UInt32
    var cookie: UInt32
    /// The name without its padding.
    var name: [UInt8]

    /// The bytes of the record, as a read returns them.
    var bytes: [UInt8] {
        // A zero byte ends the name, and more zero bytes pad it.
        let length = name.isEmpty ? 0 : (name.count / Self.headerSize + 1) * Self.headerSize
        assert(length % Self.headerSize == 0 && (length > name.count || name.isEmpty), "no zero byte ends a name")
        var bytes: [UInt8] = []
        for number in [UInt32(bitPattern: watch), mask, cookie, UInt32(length)] {
            withUnsafeBytes(of: number) { bytes += $0 }
        }
        return bytes + name + [UInt8](repeating: 0, count: length - name.count)
    }

    static let headerSize = 16

    /// Returns the records of a buffer in order. The system writes only whole records, so the last is never incomplete.
    static func all(in buffer: UnsafeRawBufferPointer) -> [InotifyRecord] {
        var records: [InotifyRecord] = []
        var start = 0
        while start + headerSize <= buffer.count {
            let name = start + headerSize
            let end = name + Int(buffer.loadUnaligned(fromByteOffset: start + 12, as: UInt32.self))
            guard end <= buffer.count else { break }
            records.append(
                InotifyRecord(
                    watch: buffer.loadUnaligned(fromByteOffset: start, as: Int32.self),
                    mask: buffer.loadUnaligned(fromByteOffset: start + 4, as: UInt32.self),
                    cookie: buffer.loadUnaligned(fromByteOffset: start + 8, as: UInt32.self),
                    name: Array(buffer[name..<end].prefix { $0 != 0 })))
            start = end
        }
        return records
    }

    /// The kinds of events in the record. Linux sets one of these bits in a record; if it ever sets several, they are
    /// reported one after another.
    var kinds: [FileEvent.Kind] {
        InotifyRecord.kindsOfBits.compactMap { mask & UInt32(bitPattern: $0.bit) == 0 ? nil : $0.kind }
    }

    var isDirectory: Bool { mask & UInt32(bitPattern: IN_ISDIR) != 0 }

    private static let kindsOfBits: [(bit: Int32, kind: FileEvent.Kind)] = [
        (IN_CREATE, .created), (IN_MODIFY, .modified), (IN_CLOSE_WRITE, .closedAfterWriting),
        (IN_ATTRIB, .attributesChanged), (IN_MOVED_FROM, .movedFrom), (IN_MOVED_TO, .movedTo), (IN_DELETE, .deleted),
        (IN_DELETE_SELF, .deletedSelf), (IN_MOVE_SELF, .movedSelf), (IN_UNMOUNT, .unmounted),
        (IN_IGNORED, .ignored), (IN_Q_OVERFLOW, .overflow),
    ]
}

extension FileWatcher {
    /// Returns the bytes of a record that a read from `openFileWatcher()`'s descriptor gives. Any thread.
    ///
    /// - Parameters:
    ///   - watch: the number that `watch(_:with:for:)` gave to the watched file; -1 for none.
    ///   - mask: the kind of the event, as in inotify.
    ///   - cookie: the number that both parts of a move have; otherwise 0.
    ///   - name: the name in the watched directory; empty for the file itself.
    @_spi(Ports) public static func record(watch: Int32, mask: UInt32, cookie: UInt32, name: [UInt8]) -> [UInt8] {
        InotifyRecord(watch: watch, mask: mask, cookie: cookie, name: name).bytes
    }
}
