import Glibc

/// A file that is removed when its last reference is released.
package final class TemporaryFile {
    package let path: String

    package init(_ bytes: [UInt8] = []) {
        var template = Array("/tmp/runloopkit.XXXXXX".utf8CString)
        let file = mkstemp(&template)
        precondition(file >= 0 && write(file, bytes, bytes.count) == bytes.count, "no file (errno \(errno))")
        close(file)
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    package convenience init(_ text: String) {
        self.init(Array(text.utf8))
    }

    deinit {
        unlink(path)
    }
}
