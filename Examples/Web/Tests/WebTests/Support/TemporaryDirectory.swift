import FoundationEssentials
import Glibc

/// A directory that is removed, with its contents, when its last reference is released.
final class TemporaryDirectory: Sendable {
    let path: String

    init() {
        var template = Array("/tmp/web.XXXXXX".utf8CString)
        precondition(mkdtemp(&template) != nil, "no directory (errno \(errno))")
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    deinit {
        try? FileManager.default.removeItem(atPath: path)
    }

    subscript(name: String) -> String { "\(path)/\(name)" }

    func write(_ bytes: some Sequence<UInt8>, to name: String) {
        do { try Data(bytes).write(to: URL(filePath: self[name])) } catch { preconditionFailure("\(error)") }
    }

    /// Returns the contents of a file; `nil` if there is none.
    func contents(of name: String) -> [UInt8]? {
        (try? Data(contentsOf: URL(filePath: self[name]))).map { Array($0) }
    }

    /// Returns the names in a directory in this one, sorted.
    func names(in name: String) -> [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: self[name])) ?? []).sorted()
    }
}
