internal import Glibc
internal import RunLoopUnix

/// The bytes of a file, up to one byte beyond the limit.
func readFile(_ path: String, upTo most: Int) throws(TLSError) -> [UInt8] {
    guard !path.utf8.contains(0) else { throw TLSError(.configuration, "the path \(path) has a zero byte in it") }
    let file = open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { throw TLSError(.configuration, SystemError("open \(path)", errno: errno).description) }
    defer { close(file) }
    var bytes: [UInt8] = []
    var piece = [UInt8](repeating: 0, count: 16 * 1024)
    while bytes.count <= most {
        let count = read(file, &piece, piece.count)
        if count < 0, errno == EINTR { continue }
        guard count >= 0 else { throw TLSError(.configuration, SystemError("read \(path)", errno: errno).description) }
        if count == 0 { return bytes }
        bytes += piece.prefix(count)
    }
    return bytes
}
