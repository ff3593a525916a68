/// Looks for the step of a failing run from which on its fault is likely.
struct CauseSearch {
    private let fault: Fault
    private let token: ScheduleToken
    private let length: RunLength
    private let end: ContinuousClock.Instant
    private var likelihoods: [Cause.Likelihood]

    /// The number of runs for a first estimate, and for the steps beside the jump.
    private static let (fewRuns, manyRuns) = (12, 32)
    /// The smallest rise to examine.
    private static let leastRise = 0.25

    /// - Parameters:
    ///   - steps: the number of steps of the run.
    ///   - duration: the longest time that the search may take, in real time.
    init(_ fault: Fault, of token: ScheduleToken, steps: Int, length: RunLength, for duration: Duration) {
        (self.fault, self.token, self.length) = (fault, token, length)
        end = ContinuousClock.now + duration
        likelihoods = [Cause.Likelihood(steps: 0), Cause.Likelihood(steps: steps)]
    }

    private var isOver: Bool { ContinuousClock.now >= end }

    /// - Returns: the likelihoods after some numbers of steps; `nil` if the time is over before the first two are
    ///   known.
    mutating func run(_ runner: inout some Runner & ~Copyable) -> [Cause.Likelihood]? {
        for index in likelihoods.indices { estimate(index, in: Self.fewRuns, &runner) }
        guard !isOver else { return nil }
        while !isOver, let rise = Cause.largestRise(in: likelihoods, atLeast: Self.leastRise) {
            if !halve(rise, &runner) {
                guard likelihoods[rise...(rise + 1)].contains(where: { $0.runs < Self.manyRuns }) else { break }
                for index in [rise, rise + 1] { estimate(index, in: Self.manyRuns, &runner) }
            }
        }
        estimate(0, in: Self.manyRuns, &runner)
        return likelihoods
    }

    /// Adds a likelihood in the middle of a rise.
    ///
    /// - Returns: `true` if there is a middle; there is none between consecutive steps.
    private mutating func halve(_ rise: Int, _ runner: inout some Runner & ~Copyable) -> Bool {
        let (before, after) = (likelihoods[rise].steps, likelihoods[rise + 1].steps)
        guard after > before + 1 else { return false }
        likelihoods.insert(Cause.Likelihood(steps: (before + after) / 2), at: rise + 1)
        estimate(rise + 1, in: Self.fewRuns, &runner)
        if likelihoods[rise + 1].runs < Self.fewRuns { likelihoods.remove(at: rise + 1) }
        return true
    }

    /// Makes runs until there are `runs`, or the time is over.
    private mutating func estimate(_ index: Int, in runs: Int, _ runner: inout some Runner & ~Copyable) {
        while likelihoods[index].runs < runs, !isOver {
            let likelihood = likelihoods[index]
            let variation = Variation(token: token, steps: likelihood.steps, number: likelihood.runs)
            let run = runner.vary(variation, length: length)
            likelihoods[index].runs += 1
            if run.fault?.isLike(fault) ?? false { likelihoods[index].faults += 1 }
        }
    }
}
