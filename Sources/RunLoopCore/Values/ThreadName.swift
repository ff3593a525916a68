internal import CShims

/// The name of a thread, of at most 15 bytes, as the system keeps it; `main` for the main thread.
struct ThreadName: Sendable, Hashable, CustomStringConvertible {
    private var first: UInt64 = 0
    private var second: UInt64 = 0

    /// The name of the calling thread; a system call.
    static var current: ThreadName {
        var name = ThreadName()
        withUnsafeMutableBytes(of: &name) { rlk_get_thread_name($0.baseAddress) }
        return name
    }

    var description: String {
        withUnsafeBytes(of: self) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    }
}
