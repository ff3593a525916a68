internal import COpenSSL
internal import CShims
internal import Glibc
internal import RunLoopCore

extension TLSSession {
    /// Makes the session repeatable: with the random numbers of the loop's world, on whose thread it is used, and with
    /// certificates that are checked by a clock of that world.
    func makeRepeatable(on loop: RunLoop) {
        Self.takeNumbersOfWorlds()
        // A simulated clock usually begins in 2001, when no certificate was valid yet; so there it is the real one.
        let flag = rlk_set_simulated(nil)
        let now = loop.isVirtual ? time(nil) : Int(loop.world.wallTime.nanoseconds / 1_000_000_000)
        X509_VERIFY_PARAM_set_time(SSL_get0_param(ssl), now)
        rlk_set_simulated(flag)
    }

    /// Has OpenSSL ask repeatable worlds for random numbers on their threads. Set once; a process without such a world keeps
    /// OpenSSL's own.
    static func takeNumbersOfWorlds() {
        _ = numbersOfWorlds
    }

    private static let numbersOfWorlds: Void = rlk_rand_replace { bytes, count in
        guard let loop = RunLoop.installed, loop.world.isRepeatable, let bytes else {
            return rlk_rand_usual(bytes, count)
        }
        let room = UnsafeMutableRawBufferPointer(start: bytes, count: Int(count))
        if loop.isVirtual {
            rlk_simulated_random(room.baseAddress, room.count)
        } else {
            var numbers = loop.randomNumbers
            for start in stride(from: 0, to: room.count, by: 8) {
                withUnsafeBytes(of: numbers.next()) { number in
                    UnsafeMutableRawBufferPointer(rebasing: room[start...]).copyBytes(
                        from: number.prefix(room.count - start))
                }
            }
        }
        return 1
    }
}
