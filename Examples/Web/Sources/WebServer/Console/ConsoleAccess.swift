internal import Glibc
internal import RunLoopUnix

/// The console's socket, and the key of its page, readable only for users who may open the socket.
///
/// The page itself contains nothing about the daemon. It sends the key, which is behind the `#` of its address and so
/// in no log, as the first message on its WebSocket.
struct ConsoleAccess: Sendable {
    let socket: Endpoint
    private let keyFile: String
    private let key: String

    /// Makes a new key, and writes it to `PATH.key`, which only the daemon's user can read.
    init(at path: String) throws {
        socket = try Endpoint(path: path)
        keyFile = path + ".key"
        key = (0..<2).map { _ in
            let digits = String(UInt64.random(in: .min ... .max), radix: 16)
            return String(repeating: "0", count: 16 - digits.count) + digits
        }.joined()
        unlink(keyFile)
        let file = open(keyFile, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw SystemError("write \(keyFile)", errno: errno) }
        defer { close(file) }
        guard write(file, key + "\n", key.utf8.count + 1) == key.utf8.count + 1 else {
            throw SystemError("write \(keyFile)", errno: errno)
        }
    }

    func remove() { unlink(keyFile) }

    /// Returns `true` if the candidate is the key, in a time that reveals nothing about it.
    func admits(_ candidate: String) -> Bool {
        let (one, other) = (Array(key.utf8), Array(candidate.utf8))
        guard one.count == other.count else { return false }
        return zip(one, other).reduce(0) { $0 | $1.0 ^ $1.1 } == 0
    }
}
