import Glibc

/// A directory that is removed, with its contents, when its last reference is released.
package final class TemporaryDirectory {
    package let path: String

    package init() {
        var template = Array("/tmp/runloopkit.XXXXXX".utf8CString)
        precondition(mkdtemp(&template) != nil, "no directory (errno \(errno))")
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    deinit {
        TemporaryDirectory.empty(Array(path.utf8CString))
        rmdir(path)
    }

    package subscript(name: String) -> String { "\(path)/\(name)" }

    /// Makes or empties a file and writes `text` into it.
    package func write(_ text: String, to name: String) {
        let file = open(self[name], O_CREAT | O_WRONLY | O_TRUNC, 0o644)
        precondition(file >= 0, "no file (errno \(errno))")
        if !text.isEmpty { precondition(Glibc.write(file, text, text.utf8.count) == text.utf8.count, "not written") }
        close(file)
    }

    package func move(_ name: String, to other: String) {
        precondition(rename(self[name], other) == 0, "not moved (errno \(errno))")
    }

    package func delete(_ name: String) {
        precondition(remove(self[name]) == 0, "not deleted (errno \(errno))")
    }

    package func makeDirectory(_ name: String) {
        precondition(mkdir(self[name], 0o755) == 0, "not made (errno \(errno))")
    }

    /// Empties a directory. Names are bytes here: a test makes one that is not UTF-8.
    private static func empty(_ path: [CChar]) {
        guard let directory = opendir(path) else { return }
        while let entry = readdir(directory) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) { name in
                name.prefix { $0 != 0 }.map { CChar(bitPattern: $0) } + [0]
            }
            if name == [46, 0] || name == [46, 46, 0] { continue }
            let inner = path.dropLast() + [47] + name
            empty(Array(inner))
            remove(Array(inner))
        }
        closedir(directory)
    }
}
