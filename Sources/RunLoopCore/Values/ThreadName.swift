internal import CShims

/// The name of a thread, of at most 15 bytes, as the system keeps it. `main` for the main thread.
struct ThreadName: Sendable, Hashable, CustomStringConvertible {
    private var words: (UInt64, UInt64) = (0, 0)

    /// That of the calling thread; a system call.
    static var current: ThreadName {
        var name = ThreadName()
        withUnsafeMutableBytes(of: &name.words) { rlk_get_thread_name($0.baseAddress) }
        return name
    }

    var description: String {
        withUnsafeBytes(of: words) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    }

    static func == (left: ThreadName, right: ThreadName) -> Bool { left.words == right.words }

    func hash(into hasher: inout Hasher) {
        hasher.combine(words.0)
        hasher.combine(words.1)
    }
}
