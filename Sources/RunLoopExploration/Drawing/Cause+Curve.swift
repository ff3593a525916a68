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
