public import RunLoopCore
@_spi(Ports) internal import RunLoopSimulation

extension Exploration {
    /// The step of a failing run from which on its fault is likely.
    ///
    /// A step is one choice of the run: which task or thread continues, whether something unusual happens, or the value
    /// of a random quantity. Runs that repeat the first steps of the failing run, and leave all later ones to chance,
    /// show how likely the fault is after them. A `Sendable` value.
    public struct Cause: Sendable, Hashable {
        /// The frequency of the fault in runs that made the same first steps. A `Sendable` value.
        public struct Likelihood: Sendable, Hashable {
            /// The number of first steps that the runs share with the failing run.
            public let steps: Int
            /// The number of runs with the fault.
            public internal(set) var faults = 0
            /// The number of runs.
            public internal(set) var runs = 0

            /// The share of runs with the fault, from 0 to 1.
            public var rate: Double { runs == 0 ? 0 : Double(faults) / Double(runs) }
        }

        /// A step of the failing run. A `Sendable` value.
        public struct Step: Sendable, Hashable {
            /// The step's number; the first step of a run is step 1.
            public let number: Int
            /// The virtual time of the step.
            public let instant: RunLoop.Instant
            /// The name of the step's place, as in a token: the task or thread that was usually next, or the choice.
            public let place: String
            /// The choice, for example `worker goes on instead of reader`.
            public let words: String
        }

        /// The likelihoods of the fault after some numbers of steps, in ascending order: after none, after all, and
        /// around the largest rise.
        public let likelihoods: [Likelihood]

        /// The step at which the likelihood jumps; `nil` if it does not jump, or if the search ended too early.
        public let step: Step?

        /// A Boolean value that indicates whether the fault is likely whatever the first steps are: it occurs in at
        /// least three of four runs.
        public var isLikelyFromStart: Bool { likelihoods[0].rate >= 0.75 }

        /// - Parameter likelihoods: at least two.
        init(_ likelihoods: [Likelihood], _ choices: [Trace.Choice]) {
            self.likelihoods = likelihoods
            step = Self.largestRise(in: likelihoods, atLeast: Self.jump).flatMap { rise in
                let (before, after) = (likelihoods[rise].steps, likelihoods[rise + 1].steps)
                guard after == before + 1, before < choices.count else { return nil }
                let choice = choices[before]
                return Step(number: after, instant: choice.date, place: choice.place, words: choice.words)
            }
        }

        /// The smallest rise of the likelihood that counts as a jump: three standard deviations of the difference
        /// between two rates in 32 runs.
        private static let jump = 0.375

        /// Returns the index of the likelihood after which it rises most; `nil` if no rise is large enough.
        static func largestRise(in likelihoods: [Likelihood], atLeast least: Double) -> Int? {
            func rise(_ index: Int) -> Double { likelihoods[index + 1].rate - likelihoods[index].rate }
            return likelihoods.indices.dropLast().filter { rise($0) >= least }.max { rise($0) < rise($1) }
        }
    }
}

typealias Cause = Exploration.Cause

extension Exploration.Cause: CustomStringConvertible {
    /// For example `From step 14, client: the answer is lost, the fault came in 31 of 32 runs that went on by chance;
    /// before it in 3 of 32.`
    public var description: String {
        if isLikelyFromStart {
            return "The fault is likely from the start: it came in \(likelihoods[0].words) runs by chance."
        }
        guard let step, let index = likelihoods.firstIndex(where: { $0.steps == step.number }) else {
            return "The fault became likely at no single step."
        }
        return
            "From step \(step.number), \(step.words), the fault came in \(likelihoods[index].words) runs that went on "
            + "by chance; before it in \(likelihoods[index - 1].words)."
    }
}

extension Exploration.Cause.Likelihood {
    /// For example `31 of 32`.
    var words: String { "\(faults) of \(runs)" }
}

extension Trace {
    var choices: [Choice] { entries.compactMap(\.choice) }
}

extension Trace.Choice {
    /// The choice in words, for example `worker goes on instead of reader`, or `the answer: 7`.
    var words: String {
        if isAmongLanes { return outcome }
        return kind == .fault && isDeparture && names.count == 2 ? place : "\(place): \(outcome)"
    }

    /// The words without the place, except for a choice among lanes.
    var outcome: String {
        func lane(_ choice: Int) -> Substring { name(of: choice).drop { $0 == "*" } }
        if isAmongLanes { return "\(lane(chosen)) continues" + (isDeparture ? " instead of \(lane(usual))" : "") }
        return name(of: chosen) == place ? "happens" : name(of: chosen)
    }
}

extension Exploration.Cause {
    /// The likelihoods as bars, one line each.
    var curve: [String] {
        let width = likelihoods.map { "\($0.steps)".count }.max()!
        return likelihoods.map { likelihood in
            let steps = "\(likelihood.steps)"
            let bar = String(repeating: "█", count: Int((likelihood.rate * 32).rounded()))
            let words = likelihood.words
            return "  after " + String(repeating: " ", count: width - steps.count) + "\(steps) steps  "
                + String(repeating: " ", count: max(0, 8 - words.count)) + words + (bar.isEmpty ? "" : "  \(bar)")
        }
    }
}
