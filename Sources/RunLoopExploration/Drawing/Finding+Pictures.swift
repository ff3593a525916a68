internal import RunLoopCore
@_spi(Ports) internal import RunLoopSimulation

extension Exploration.Finding {
    /// A picture of the failing run: the rows around its departures and around the step of its ``cause``, and the last
    /// rows. Drawn on each access; O(n) in the number of events.
    public var picture: String { run.lines(around: cause?.step?.number).joined(separator: "\n") }

    /// A picture of a run that passes, with one departure fewer; drawn as ``picture`` is.
    public var nearest: String? { passingRun?.picture }

    /// The ``picture`` as a self-contained SVG document, with the likelihoods of the ``cause`` under it. Drawn on each
    /// access; O(n) in the number of events.
    public var svg: String { run.drawing(around: cause?.step?.number).document(cause) }

    /// The failing run, and beside it a run that passes with one departure fewer, as one self-contained HTML document
    /// with zoom, search, and steps forward and back. Drawn on each access; O(n) in the number of events. Of a very
    /// long run it has only the last events.
    public var html: String { Page(self).text }

    /// The events and choices of the failing run, one line each. Made on each access; O(n) in their number.
    public var trace: String { run.description }
}

extension SimulationTrace {
    /// A picture of the run: the rows around its departures, and the last rows. Drawn on each access; O(n) in the
    /// number of events.
    public var picture: String { lines(around: nil).joined(separator: "\n") }

    /// The ``picture`` as a self-contained SVG document. Drawn on each access; O(n) in the number of events.
    public var svg: String { drawing(around: nil).document(nil) }

    /// The run as one self-contained HTML document with zoom, search, and steps forward and back. Drawn on each access;
    /// O(n) in the number of events. Of a very long run it has only the last events.
    public var html: String { Page(self).text }

    /// Returns the lines of a picture, which also shows the choice with the number `step`, counted from 1.
    func lines(around step: Int?) -> [String] {
        let end = trace.entries.last?.date ?? RunLoop.Instant(nanoseconds: 0)
        let lines = ["seed \(token.seed), at \(end)"] + Picture(Trace.rows(of: trace.entries), around: step).lines
        return endsProcess ? lines + ["Here the process has ended."] : lines
    }

    func drawing(around step: Int?) -> Drawing {
        let rows = Trace.rows(of: trace.entries)
        return Drawing([rows], [trace.choices], rows.centred(on: step).map { [$0] }, step: step)
    }

    /// `true` if the run ended because its process did.
    var endsProcess: Bool { fault?.kind == .trap || fault?.kind == .hang }
}
