internal import Glibc
@_spi(Ports) internal import RunLoopUnix

/// Returns the bytes of a regular file, up to one byte beyond the limit.
func readFile(_ path: String, upTo most: Int) throws(TLSError) -> [UInt8] {
    guard !path.utf8.contains(0) else { throw TLSError(.configuration, "the path \(path) has a zero byte in it") }
    guard let bytes = WorldSystem.current.contentsOfFile(path, upTo: most) else {
        let reason = errno
        throw TLSError(
            .configuration,
            reason == EINVAL
                ? "\(path) is not a regular file" : SystemError("open \(path)", errno: reason).description)
    }
    return bytes
}
