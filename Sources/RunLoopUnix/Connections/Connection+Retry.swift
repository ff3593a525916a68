internal import Glibc
@_spi(Ports) internal import RunLoopKit

extension Connection {
    /// A policy for further attempts to connect to a host. A value and `Sendable`.
    ///
    /// The first delay is ``firstDelay``, and each further delay is ``factor`` times as long as the previous one, up to
    /// ``maximumDelay``. A random part of each delay, at most ``jitter``, is left out, so that clients that lose their
    /// server at the same time do not all reconnect at the same time. The random numbers come from
    /// ``/RunLoopKit/RunLoop/randomNumbers``.
    public struct Retry: Sendable, Hashable {
        /// The delay after the first try, before jitter; above zero, by default 1 s.
        public var firstDelay = Duration.seconds(1)
        /// The factor between a delay and the next; at least 1, by default 2.
        public var factor = 2.0
        /// The longest delay; above zero, by default 60 s.
        public var maximumDelay = Duration.seconds(60)
        /// The largest part of a delay that may be left out at random, from 0 for exact delays to 1 for delays between
        /// zero and the whole ("full jitter"); by default 1.
        public var jitter = 1.0
        /// The maximum number of tries, including the first; at least 1, by default 10. `nil` means no limit.
        public var maximumTries: Int? = 10
        /// The time that all tries may take, with the delays. A try pending at that time fails, and if the next try
        /// would begin later, the failure is reported at once. `nil`, the default, means no limit.
        public var totalTimeout: Duration?

        /// Creates the default policy.
        public init() {}

        func check() {
            require(firstDelay > .zero, "a retry's firstDelay is more than zero; without a delay it would never rest")
            require(maximumDelay > .zero, "a retry's maximumDelay is more than zero; without one it would never rest")
            require(factor >= 1 && factor.isFinite, "a retry's factor is a number of at least 1; 1 keeps the delay")
            require(jitter >= 0 && jitter <= 1, "a retry's jitter is from 0, for none, to 1, for the whole delay")
            require(maximumTries ?? 1 >= 1, "a retry's maximumTries is at least 1; set it to nil for no limit")
        }

        /// Returns whether to try again after `tries` tries, the last of which failed with `error`.
        func allows(_ tries: Int, _ error: ConnectError) -> Bool {
            if case .lookup(let failure) = error, failure.kind == .invalidName { return false }
            return tries < maximumTries ?? .max
        }

        /// Returns the delay after `tries` tries.
        ///
        /// - Parameter random: a number from 0 up to 1.
        func delay(after tries: Int, random: Double) -> Duration {
            let growth = min(pow(factor, Double(tries - 1)), .greatestFiniteMagnitude)
            let most = min(Double(firstDelay.nanoseconds) * growth, Double(maximumDelay.nanoseconds))
            return .nanoseconds(Int64(exactly: (most * (1 - jitter * random)).rounded()) ?? .max)
        }
    }
}
