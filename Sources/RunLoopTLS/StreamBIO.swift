internal import COpenSSL
internal import RunLoopUnix

/// The BIO through which OpenSSL reads and writes the stream beneath TLS.
enum StreamBIO {
    // Unsafe, because it is a pointer: it is set up once, and only read after that.
    private nonisolated(unsafe) static let method: OpaquePointer = {
        let type = BIO_get_new_index() | BIO_TYPE_SOURCE_SINK
        let method = BIO_meth_new(type, "byte stream")!
        BIO_meth_set_read(method, receive)
        BIO_meth_set_write(method, transmit)
        BIO_meth_set_ctrl(method, control)
        return method
    }()

    /// Makes a BIO for a stream, which must outlive it.
    static func make(_ stream: StreamBelow) -> OpaquePointer {
        let bio = BIO_new(method)!
        BIO_set_data(bio, Unmanaged.passUnretained(stream).toOpaque())
        BIO_set_init(bio, 1)
        return bio
    }

    private static func stream(of bio: OpaquePointer?) -> Unmanaged<StreamBelow> {
        Unmanaged.fromOpaque(BIO_get_data(bio))
    }

    private static let receive: @convention(c) (OpaquePointer?, UnsafeMutablePointer<CChar>?, Int32) -> Int32 = {
        BIO_clear_flags($0, retryFlags)
        let room = UnsafeMutableRawBufferPointer(start: $1, count: Int($2))
        switch stream(of: $0)._withUnsafeGuaranteedRef({ $0.read(into: room) }) {
        case .done(let count): return Int32(count)
        case .mustWait: BIO_set_flags($0, BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY)
        case .ended:
            BIO_set_flags($0, BIO_FLAGS_IN_EOF)
            return 0
        case .failed: break
        }
        return -1
    }

    private static let transmit: @convention(c) (OpaquePointer?, UnsafePointer<CChar>?, Int32) -> Int32 = {
        BIO_clear_flags($0, retryFlags)
        let bytes = UnsafeRawBufferPointer(start: $1, count: Int($2))
        switch stream(of: $0)._withUnsafeGuaranteedRef({ $0.stream.write(bytes) }) {
        case .done(let count): return Int32(count)
        case .mustWait: BIO_set_flags($0, BIO_FLAGS_WRITE | BIO_FLAGS_SHOULD_RETRY)
        case .ended, .failed: break
        }
        return -1
    }

    private static let retryFlags = BIO_FLAGS_READ | BIO_FLAGS_WRITE | BIO_FLAGS_SHOULD_RETRY

    private static let control: @convention(c) (OpaquePointer?, Int32, Int, UnsafeMutableRawPointer?) -> Int = {
        bio, command, _, _ in
        switch command {
        case BIO_CTRL_FLUSH: 1
        case BIO_CTRL_EOF: BIO_test_flags(bio, BIO_FLAGS_IN_EOF) == 0 ? 0 : 1
        default: 0
        }
    }
}

/// The stream beneath TLS, and the number of bytes that may be read from it for now.
final class StreamBelow {
    let stream: any ByteStream
    // Unchecked as in `Connection`.
    @exclusivity(unchecked) private(set) var allowance = 0

    init(_ stream: any ByteStream) {
        self.stream = stream
    }

    func isReadable() {
        allowance = 64 * 1024
    }

    /// Reads as many bytes as are allowed. A read that did not fill its room has emptied the stream, which reports
    /// further input.
    func read(into room: UnsafeMutableRawBufferPointer) -> StreamResult {
        guard allowance > 0 else { return .mustWait }
        let room = UnsafeMutableRawBufferPointer(rebasing: room.prefix(allowance))
        let result = stream.read(into: room)
        if case .done(let count) = result, count == room.count { allowance -= count } else { allowance = 0 }
        return result
    }
}
