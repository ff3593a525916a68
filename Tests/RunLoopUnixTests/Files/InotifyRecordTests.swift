import Glibc
import Testing

@_spi(Ports) @testable import RunLoopUnix

@Suite("Records of inotify")
struct InotifyRecordTests {
    /// Returns a record as the system writes it, with a name of `length` bytes, padding included.
    private func bytes(_ watch: Int32, _ mask: Int32, cookie: UInt32 = 0, name: [UInt8] = [], length: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        for field in [UInt32(bitPattern: watch), UInt32(bitPattern: mask), cookie, UInt32(length)] {
            withUnsafeBytes(of: field) { bytes += $0 }
        }
        return bytes + name + Array(repeating: 0, count: max(0, length - name.count))
    }

    private func records(_ bytes: [UInt8]) -> [InotifyRecord] {
        bytes.withUnsafeBytes(InotifyRecord.all(in:))
    }

    @Test("records follow one another, with and without names")
    func several() {
        let buffer =
            bytes(1, IN_MODIFY, length: 0) + bytes(2, IN_MOVED_FROM, cookie: 7, name: Array("a".utf8), length: 16)
            + bytes(3, IN_CREATE | IN_ISDIR, name: Array("directory".utf8), length: 16)
        let found = records(buffer)
        #expect(found.map(\.watch) == [1, 2, 3])
        #expect(found.map(\.cookie) == [0, 7, 0])
        #expect(found.map { String(decoding: $0.name, as: UTF8.self) } == ["", "a", "directory"])
        #expect(found.map(\.kinds) == [[.modified], [.movedFrom], [.created]])
        #expect(found.map(\.isDirectory) == [false, false, true])
    }

    @Test("a buffer that ends within a record is read up to it, wherever it ends")
    func truncated() {
        let whole = bytes(1, IN_MODIFY, length: 0)
        let cut = bytes(2, IN_CREATE, name: Array("name".utf8), length: 16)
        for count in 0..<cut.count { #expect(records(whole + cut.prefix(count)).map(\.watch) == [1]) }
    }

    @Test("a length that is beyond all bounds ends the reading")
    func absurdLength() {
        var buffer = bytes(1, IN_CREATE, length: 0)
        for place in 12..<16 { buffer[place] = 0xFF }
        #expect(records(buffer).isEmpty)
    }

    @Test("a record with several bits is several events, in a fixed order")
    func severalBits() {
        #expect(
            records(bytes(1, IN_DELETE_SELF | IN_ATTRIB, length: 0))[0].kinds == [.attributesChanged, .deletedSelf])
    }
}
