internal import COpenSSL
internal import CShims
internal import Glibc
@_spi(Ports) internal import RunLoopCore

extension TLSSession {
    /// Makes the session repeatable: it draws random numbers from the loop's world, and checks certificates by that
    /// world's clock. Called on the loop's thread.
    func makeRepeatable(on loop: RunLoop) {
        _ = numbersOfWorlds
        // A simulated clock usually begins in 2001, when no certificate was valid yet, so a simulation uses the real
        // clock.
        let flag = rlk_set_simulated(nil)
        let now = loop.isVirtual ? time(nil) : Int(loop.world.wallTime.nanoseconds / 1_000_000_000)
        X509_VERIFY_PARAM_set_time(SSL_get0_param(ssl), now)
        rlk_set_simulated(flag)
    }

    /// The seconds on the clock of the calling thread's world.
    fileprivate static var timeOfWorld: Int? {
        RunLoop.installed.map { Int($0.world.wallTime.nanoseconds / 1_000_000_000) }
    }
}

/// Makes OpenSSL ask repeatable worlds for random numbers on their threads. Evaluated once; a process without such a
/// world keeps OpenSSL's generator.
private let numbersOfWorlds: Void = rlk_rand_replace { bytes, count in
    guard let loop = RunLoop.installed, loop.world.isRepeatable, let bytes else { return rlk_rand_usual(bytes, count) }
    if loop.isVirtual {
        rlk_simulated_random(bytes, Int(count))
        return 1
    }
    var numbers = loop.randomNumbers
    let room = UnsafeMutableRawBufferPointer(start: bytes, count: Int(count))
    assert(count >= 0, "OpenSSL asks for less than no numbers")
    for start in stride(from: 0, to: room.count, by: 8) {
        withUnsafeBytes(of: numbers.next()) { room[start...].copyBytes(from: $0.prefix(room.count - start)) }
    }
    return 1
}

extension TLSContext {
    /// Makes OpenSSL draw random numbers from the calling thread's world if that is repeatable.
    static func takeNumbersOfWorld() {
        if RunLoop.installed?.world.isRepeatable == true { _ = numbersOfWorlds }
    }

    /// Stamps tickets with the time of a recorded or replayed world. By the system's clock, a replay would send other
    /// tickets, and find its clients' tickets too old.
    func takeTimeOfWorld() {
        guard let loop = RunLoop.installed, loop.world.isRepeatable, !loop.isVirtual else { return }
        SSL_CTX_set_session_ticket_cb(
            pointer,
            { ssl, _ in
                if let time = TLSSession.timeOfWorld, let session = SSL_get_session(ssl) {
                    SSL_SESSION_set_time(session, time)
                }
                return 1
            },
            { _, session, _, _, status, _ in
                guard status == SSL_TICKET_SUCCESS || status == SSL_TICKET_SUCCESS_RENEW, let session else {
                    return SSL_TICKET_RETURN(SSL_TICKET_RETURN_IGNORE_RENEW)
                }
                if let now = TLSSession.timeOfWorld {
                    let age = now - SSL_SESSION_get_time(session)
                    guard age <= SSL_SESSION_get_timeout(session) else {
                        return SSL_TICKET_RETURN(SSL_TICKET_RETURN_IGNORE_RENEW)
                    }
                    // OpenSSL compares the session's time with the system's clock.
                    SSL_SESSION_set_time(session, time(nil))
                }
                return SSL_TICKET_RETURN(
                    status == SSL_TICKET_SUCCESS ? SSL_TICKET_RETURN_USE : SSL_TICKET_RETURN_USE_RENEW)
            }, nil)
    }
}
