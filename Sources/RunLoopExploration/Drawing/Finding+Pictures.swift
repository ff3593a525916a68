internal import RunLoopCore
internal import RunLoopSimulation

extension Exploration.Finding {
    /// A picture of the failing run: the rows around its departures and around the step of its ``cause``, and the last
    /// ones. Drawn when it is asked for; O(n) in the number of events.
    public var picture: String {
        var lines =
            [failing.heading(seed: token.seed)] + Picture(Rows(failing.entries), around: cause?.step?.number).lines
        if endsProcess { lines.append("Here the process has ended.") }
        return lines.joined(separator: "\n")
    }

    /// A picture of a run that passes, with one departure less; drawn as ``picture`` is.
    public var nearest: String? {
        passing.map {
            ([$0.heading(seed: token.seed)] + Picture(Rows($0.entries), around: nil).lines).joined(separator: "\n")
        }
    }

    /// The ``picture`` as an SVG document, with the likelihoods of the ``cause`` under it. It needs no other file. Drawn
    /// when it is asked for; O(n) in the number of events.
    public var svg: String {
        let rows = Rows(failing.entries)
        let drawing = Drawing([rows], rows.centred(on: cause?.step?.number).map { [$0] }, step: cause?.step?.number)
        return drawing.document(cause)
    }

    /// The failing run, and beside it a run that passes with one departure less, as one HTML document: with zoom, search,
    /// and steps forward and back. It needs no other file and no network. Drawn when it is asked for; O(n) in the number
    /// of events, of which it has the last ones of a very long run.
    public var html: String { Page(self).text }

    /// The events and choices of the failing run, one line each. Made when it is asked for; O(n) in their number.
    public var trace: String {
        failing.entries.map { entry in
            switch entry {
            case .event(let event): "\(event.date) \(event.lane): \(event.fullWords)"
            case .choice(let choice): "\(choice.date) \(choice.place)@\(choice.step): \(choice.outcome)"
            }
        }.joined(separator: "\n")
    }

    /// Whether the failing run ended because its process did.
    var endsProcess: Bool { fault.kind == .trap || fault.kind == .hang }
}

extension Trace {
    /// The first line of a picture.
    func heading(seed: UInt64) -> String {
        "seed \(seed), at \(entries.last?.date ?? RunLoop.Instant(nanoseconds: 0))"
    }
}

extension Trace.Event {
    /// The words, with the thread or the sender, and for an event without a row its kind.
    var fullWords: String {
        let words =
            switch kind {
            case .began: "begins"
            case .ended: "ends"
            case .renamed(let name): "is \(name) from now on"
            case .message(_, let sender): "\(self.words) from \(sender)"
            case .note, .call, .ignored: self.words
            }
        return (thread.map { "\($0): " } ?? "") + words
    }
}
