internal import COpenSSL
internal import Glibc

/// How OpenSSL reads and writes a socket. OpenSSL itself would call `write`, and a peer that has gone would then kill
/// the process with SIGPIPE.
enum SocketBIO {
    // Unsafe, because it is a pointer: it is set up once, and only read after that.
    private nonisolated(unsafe) static let method: OpaquePointer = {
        let type = BIO_get_new_index() | BIO_TYPE_SOURCE_SINK | BIO_TYPE_DESCRIPTOR
        let method = BIO_meth_new(type, "socket without SIGPIPE")!
        BIO_meth_set_read(method, receive)
        BIO_meth_set_write(method, transmit)
        BIO_meth_set_ctrl(method, control)
        return method
    }()

    /// One for a descriptor, which it does not close.
    static func make(_ descriptor: Int32) -> OpaquePointer {
        let bio = BIO_new(method)!
        BIO_set_data(bio, UnsafeMutableRawPointer(bitPattern: Int(descriptor)))
        BIO_set_init(bio, 1)
        return bio
    }

    // A BIO carries one number: the descriptor, and above it a bit that says whether the last read filled the room it
    // had.
    private static let filledBit = 1 << 32

    private static func descriptor(of bio: OpaquePointer?) -> Int32 {
        Int32(truncatingIfNeeded: Int(bitPattern: BIO_get_data(bio)))
    }

    /// Whether there may be more to read; if not, the descriptor reports when there is.
    static func mayHaveMore(_ bio: OpaquePointer?) -> Bool {
        Int(bitPattern: BIO_get_data(bio)) & filledBit != 0
    }

    private static let receive: @convention(c) (OpaquePointer?, UnsafeMutablePointer<CChar>?, Int32) -> Int32 = {
        BIO_clear_flags($0, retryFlags)
        let descriptor = descriptor(of: $0)
        let count = recv(descriptor, $1, Int($2), 0)
        let number = Int(descriptor) | (count == Int($2) ? filledBit : 0)
        BIO_set_data($0, UnsafeMutableRawPointer(bitPattern: number))
        if count == 0 { BIO_set_flags($0, BIO_FLAGS_IN_EOF) }
        if count < 0, mayRetry { BIO_set_flags($0, BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY) }
        return Int32(count)
    }

    private static let transmit: @convention(c) (OpaquePointer?, UnsafePointer<CChar>?, Int32) -> Int32 = {
        BIO_clear_flags($0, retryFlags)
        let count = send(descriptor(of: $0), $1, Int($2), Int32(MSG_NOSIGNAL))
        if count < 0, mayRetry { BIO_set_flags($0, BIO_FLAGS_WRITE | BIO_FLAGS_SHOULD_RETRY) }
        return Int32(count)
    }

    private static let retryFlags = BIO_FLAGS_READ | BIO_FLAGS_WRITE | BIO_FLAGS_SHOULD_RETRY
    private static var mayRetry: Bool { errno == EAGAIN || errno == EINTR }

    private static let control: @convention(c) (OpaquePointer?, Int32, Int, UnsafeMutableRawPointer?) -> Int = {
        bio, command, _, _ in
        switch command {
        case BIO_CTRL_FLUSH: 1
        case BIO_CTRL_EOF: BIO_test_flags(bio, BIO_FLAGS_IN_EOF) == 0 ? 0 : 1
        default: 0
        }
    }
}
