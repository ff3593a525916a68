/// The description in the scenario of an item that fires, as far as a picture shows it.
struct Plan {
    var name: String
    /// The text below the name.
    var note: String
    var first: Int64
    /// The interval; 0 for an item that fires once.
    var interval: Int64
    var tolerance: Int64 = 0
    var busy: Int64 = 0
    var target: String?
    var isInBackground = false
    /// `true` if the item's due points follow from the scenario alone, because it is neither moved, held back nor
    /// scheduled anew.
    var hasFixedGrid: Bool
}

extension Scenario {
    /// All items that fire, in the order of the file.
    var plans: [Plan] {
        var named: [Plan] = []
        for entry in self.named where !named.contains(where: { $0.name == entry.name }) { named.append(Plan(entry)) }
        return timers.map { Plan($0, isMoved: moved.contains($0.name)) } + sources.map(Plan.init)
            + links.map(Plan.init) + named + countdowns.map(Plan.init)
    }

    private var moved: Set<String> {
        Set(
            actions.compactMap { action -> String? in
                guard case .setFireDate(let timer, _) = action.verb else { return nil }
                return timer
            })
    }
}

extension Plan {
    fileprivate init(_ timer: Scenario.TimerEntry, isMoved: Bool) {
        let when = timer.repeats ? "every \(decimalSeconds(timer.interval, decimals: 0)) s" : "once"
        self.init(
            name: timer.name, note: "\(when), \(timer.modes.joined(separator: " + "))", first: timer.first,
            interval: timer.interval, tolerance: timer.tolerance, busy: timer.busy, target: timer.target?.name,
            hasFixedGrid: !isMoved)
    }

    fileprivate init(_ source: Scenario.SourceEntry) {
        let when = source.interval > 0 ? "every \(decimalSeconds(source.interval, decimals: 0)) s" : "once"
        self.init(
            name: source.name, note: "source, \(when)", first: source.start, interval: source.interval,
            tolerance: source.leeway, busy: source.busy, target: source.target?.name,
            isInBackground: source.queue == .background, hasFixedGrid: false)
    }

    fileprivate init(_ link: Scenario.LinkEntry) {
        // The divisor whose rate is nearest to the preferred one, as the link chooses it.
        let divisors = link.preferred == 0 ? 1...1 : 1...link.rate
        let divisor = divisors.min {
            abs(link.rate - link.preferred * $0) * $1 < abs(link.rate - link.preferred * $1) * $0
        }!
        let rate = "link, \(decimalSeconds(Int64(link.rate) * 1_000_000_000 / Int64(divisor), decimals: 0)) Hz"
        self.init(
            name: link.name, note: "\(rate), \(link.modes.joined(separator: " + "))", first: 0,
            interval: 1_000_000_000 * Int64(divisor) / Int64(link.rate), busy: link.busy, hasFixedGrid: false)
    }

    fileprivate init(_ named: Scenario.NamedEntry) {
        let when = named.repeats ? "every \(decimalSeconds(named.interval, decimals: 0)) s" : "once"
        self.init(
            name: named.name, note: "by name, \(when)", first: named.at + named.interval, interval: 0,
            busy: named.busy, isInBackground: named.queue == .background, hasFixedGrid: false)
    }

    fileprivate init(_ countdown: Scenario.CountdownEntry) {
        self.init(
            name: countdown.name,
            note: "countdown, every \(decimalSeconds(countdown.interval, decimals: 0)) s", first: 0, interval: 0,
            hasFixedGrid: false)
    }
}
