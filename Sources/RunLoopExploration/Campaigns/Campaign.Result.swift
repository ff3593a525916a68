@_spi(Ports) public import RunLoopSimulation

extension Campaign {
    /// The result of a campaign, or of some of its shards. A `Sendable` value.
    public struct Result: Sendable {
        /// The name of the campaign.
        public let name: String

        /// The seed of the campaign's schedules.
        public let seed: UInt64

        /// The shards that have reported their results, sorted by number.
        public internal(set) var shards: [Shard]

        /// The number of schedules.
        public internal(set) var schedules = 0

        /// The duration of the campaign, in real time; of several shards, the longest duration.
        public internal(set) var duration = Duration.zero

        /// The number of schedules that have met each mark. A process that traps does not report the marks of its last
        /// run.
        public internal(set) var marks = Simulation.Marks()

        /// The marks that had to be met.
        public internal(set) var required: [String]

        /// The faults, each group once, in the order of their files.
        public internal(set) var findings: [Finding] = []

        /// A group of faults. A `Sendable` value.
        public struct Finding: Sendable, Hashable {
            /// The first fault of the group.
            public let fault: Exploration.Fault

            /// The shortest known schedule that fails in this way.
            public let token: ScheduleToken

            /// The number of schedules that failed in this way; zero for a finding of an earlier campaign whose
            /// schedule passes now.
            public internal(set) var times: Int

            /// The path of the finding's file, which has the report.
            public let file: String
        }

        /// The required marks that were not met.
        public var missing: [String] { marks.missing(of: required) }

        /// A Boolean value that indicates whether all shards have reported their results.
        public var isComplete: Bool { shards.count == shards.first?.count }

        /// A Boolean value that indicates whether nothing has failed, and each required mark was met. As long as
        /// results of other shards are missing, unmet marks do not count: the other shards may have met them.
        public var hasPassed: Bool { (missing.isEmpty || !isComplete) && findings.allSatisfy { $0.times == 0 } }
    }
}

extension Campaign.Result: CustomStringConvertible {
    /// A report: the numbers, the findings with their files, and the marks.
    public var description: String {
        let count = shards.first?.count ?? 1
        let others = Set(0..<count).subtracting(shards.map(\.index)).sorted()
        var lines = ["\(name): \(grouped(schedules)) schedules with seed \(seed) in \(clock(duration))"]
        if count > 1 {
            lines[0] += ", \(shards.count) of \(count) shards"
            // A shard's own result does not include the others.
            if shards.count > 1, !others.isEmpty {
                lines.append("no result of shard \(others.map(String.init).joined(separator: ", "))")
            }
        }
        for finding in findings {
            let times = finding.times == 1 ? "once" : "\(grouped(finding.times)) times"
            lines.append("\(finding.times == 0 ? "passes now" : "failed \(times)"): \(finding.fault)")
            lines += ["  \(finding.token)", "  \(finding.file)"]
        }
        if findings.isEmpty { lines.append("nothing has failed") }
        if !missing.isEmpty, isComplete {
            lines.append(Simulation.Marks.sentence(missing, in: "\(grouped(schedules)) schedules"))
        }
        if !marks.counts.isEmpty { lines += ["marks, by the number of schedules that have met them:", "\(marks)"] }
        return lines.joined(separator: "\n")
    }
}
