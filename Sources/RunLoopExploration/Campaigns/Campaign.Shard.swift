internal import Glibc
@_spi(Ports) internal import RunLoopCore

extension Campaign {
    /// A part of the schedules of a campaign. A `Sendable` value.
    public struct Shard: Sendable, Hashable, CustomStringConvertible {
        /// The number of the shard, from zero.
        public let index: Int

        /// The number of shards.
        public let count: Int

        /// All schedules.
        public static let whole = Shard(index: 0, of: 1)

        /// Creates a shard.
        ///
        /// - Precondition: `index` is from zero up to, and not including, `count`.
        public init(index: Int, of count: Int) {
            require((0..<count).contains(index), "a campaign of \(count) shards has no shard \(index)")
            (self.index, self.count) = (index, count)
        }

        /// For example `3 of 10`.
        public var description: String { "\(index) of \(count)" }

        /// Returns the shard that the environment names; the whole if it names none.
        ///
        /// - Throws: ``CampaignError``, if a variable makes no sense, or the number of shards is missing.
        static func ofEnvironment() throws(CampaignError) -> Shard {
            try Shard(environment: { name in getenv(name).map { String(cString: $0) } })
        }

        /// The variables that can name a shard: the index and the count, and the first index and the step, if there are
        /// any.
        private static let namings: [(index: String, count: String, first: String?, least: Int, step: String?)] = [
            ("RUNLOOP_SHARD", "RUNLOOP_SHARDS", nil, 0, nil),
            // Kubernetes has no variable for the count.
            ("JOB_COMPLETION_INDEX", "RUNLOOP_SHARDS", nil, 0, nil),
            ("SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", "SLURM_ARRAY_TASK_MIN", 0, "SLURM_ARRAY_TASK_STEP"),
            ("CI_NODE_INDEX", "CI_NODE_TOTAL", nil, 1, nil),
        ]

        init(environment value: (String) -> String?) throws(CampaignError) {
            func number(_ name: String?) throws(CampaignError) -> Int? {
                guard let name, let text = value(name) else { return nil }
                guard let number = Int(text), number >= 0 else {
                    throw CampaignError("\(name) must be the number of a shard, not \(quoted(text))")
                }
                return number
            }
            for naming in Self.namings {
                guard let given = try number(naming.index) else { continue }
                guard let count = try number(naming.count) else {
                    throw CampaignError("\(naming.index) names a shard, but \(naming.count) is not set")
                }
                let first = try number(naming.first) ?? naming.least
                let step = try number(naming.step) ?? 1
                let index = (given - first) / max(1, step)
                guard given >= first, index < count else {
                    throw CampaignError("\(naming.index) is \(given), which is no shard of \(count) from \(first)")
                }
                self.init(index: index, of: count)
                return
            }
            self = .whole
        }
    }
}
