extension Simulation {
    /// The marks of one or many simulations: how often each was met. A `Sendable` value.
    ///
    /// A test that passes may have passed because nothing interesting happened: no packet was lost, no key was evicted.
    /// A mark names such a moment, and a test that requires it fails when it was never met.
    public struct Marks: Sendable, Hashable {
        /// The number of times that each mark was met, by name; zero for a mark whose condition was evaluated and never
        /// held.
        public private(set) var counts: [String: Int]

        /// Creates marks with these counts; none by default.
        public init(_ counts: [String: Int] = [:]) {
            self.counts = counts
        }

        /// Returns the number of times that a mark was met; zero for an unknown mark. O(1).
        public subscript(mark: String) -> Int { counts[mark] ?? 0 }

        /// Returns the elements of `required` that were not met, in the same order. O(1) for each.
        public func missing(of required: some Sequence<String>) -> [String] { required.filter { self[$0] == 0 } }

        /// The marks whose condition was evaluated and never held, sorted.
        public var unmet: [String] { counts.keys.filter { self[$0] == 0 }.sorted() }

        /// Adds the counts of other marks.
        public mutating func add(_ others: Self) {
            counts.merge(others.counts, uniquingKeysWith: +)
        }

        /// Adds one for each mark that a run has met, however often.
        @_spi(Ports) public mutating func addRun(_ run: Self) {
            for (mark, count) in run.counts { meet(mark, count > 0) }
        }

        /// Counts a mark, and whether it is met.
        @_spi(Ports) public mutating func meet(_ mark: String, _ isMet: Bool) {
            counts[mark, default: 0] += isMet ? 1 : 0
        }

        /// A sentence about marks that were not met in these runs.
        @_spi(Ports) public static func sentence(_ missing: [String], in runs: String) -> String {
            "never met in \(runs): \(missing.joined(separator: ", "))"
        }
    }
}

extension Simulation.Marks: CustomStringConvertible {
    /// A line for each mark, sorted by name, with the count and the name.
    public var description: String {
        let sorted = counts.sorted { $0.key < $1.key }
        let width = sorted.map { "\($0.value)".count }.max() ?? 0
        return sorted.map { mark, count in
            String(repeating: " ", count: width - "\(count)".count) + "\(count) \(mark)"
        }.joined(separator: "\n")
    }
}

extension Simulation {
    /// Marks a moment that a test of this program should reach now and then, such as `a vote was refused`. Nothing else
    /// changes, and the trace does not show the mark.
    ///
    /// ```swift
    /// simulation.sometimes("a vote was refused", if: reply.isRefused)
    /// ```
    ///
    /// Programs that do not know the simulation use ``/RunLoopKit/RunLoop/sometimes(_:if:)``. Simulated hosts have marks of
    /// their own.
    ///
    /// Any thread; O(1).
    ///
    /// - Parameters:
    ///   - mark: the name of the mark: a sentence in the past tense.
    ///   - isMet: the condition of the mark. A mark that is never met has the count zero.
    public func sometimes(_ mark: String, if isMet: Bool = true) {
        timeline.meet(mark, isMet)
    }

    /// The marks of the simulation so far: how often each was met. Valid after the simulation has ended. Any thread.
    public var marks: Marks { timeline.marks }
}
