internal import COpenSSL
internal import CShims
internal import Glibc
internal import RunLoopCore

extension TLSSession {
    /// Makes the session repeatable: with the random numbers of the simulation, on whose thread it is used, and with
    /// certificates that are checked by the real clock, because a simulated one usually begins in 2001.
    func enterSimulation() {
        Self.seededNumbers
        let flag = rlk_set_simulated(nil)
        X509_VERIFY_PARAM_set_time(SSL_get0_param(ssl), time(nil))
        rlk_set_simulated(flag)
    }

    /// Has OpenSSL ask the simulation for random numbers on threads of one. Set once; a process without simulations keeps
    /// OpenSSL's own.
    private static let seededNumbers: Void = rlk_rand_replace { bytes, count in
        guard RunLoop.installed?.isVirtual == true else { return rlk_rand_usual(bytes, count) }
        rlk_simulated_random(bytes, Int(count))
        return 1
    }
}
