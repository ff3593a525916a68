import RunLoopCore

/// A change of a flight, as a fault of the loop would make it: a whole call is missing, comes twice or too early, or is made
/// in a wrong mode.
enum FlightDamage: String, CaseIterable {
    case event = "a lost event"
    case missing = "a missing call or sleep"
    case twice = "a call or sleep that comes twice"
    case swapped = "two neighbours in the wrong order"
    case wrongMode = "a call in another mode"
    case wrongRun = "a run in another mode"

    /// Returns the changed flight, and `true` if it has to be refused; `nil` if nothing can be changed there.
    func apply(to story: FlightStory, at place: Int) -> (story: FlightStory, mustBeRefused: Bool)? {
        var changed = story
        let event = story.entries[place].event
        switch self {
        case .event:
            if case .caused = event { return nil }
            changed.entries.remove(at: place)
            // Time may only pass while the loop sleeps.
            if case .slept(let duration, _) = event { return (changed, duration > .zero) }
            return (changed, true)
        case .missing:
            guard event.begins else { return nil }
            let unit = story.unit(at: place)
            changed.entries.removeSubrange(unit)
            if story.duration(of: unit) > .zero, story.isInRun(place) { return (changed, true) }
            if case .callBegan(let call) = event {
                return (changed, (call.isBlock && call.isCausedOnce) || (call.isObserver && story.isHeard(place)))
            }
            return (changed, false)
        case .twice:
            guard event.begins else { return nil }
            let unit = story.unit(at: place)
            guard story.duration(of: unit) == .zero else { return nil }
            changed.entries.insert(contentsOf: story.entries[unit], at: unit.upperBound)
            switch event {
            // A flight does not record that a source was signalled, a descriptor ready, or a task woken to run a step.
            case .callBegan(let call): return (changed, call.isCausedOnce || (call.isObserver && story.isHeard(place)))
            case .slept: return (changed, story.isHeard(place))
            default: return (changed, false)
            }
        case .swapped:
            guard event.begins else { return nil }
            let first = story.unit(at: place)
            guard first.upperBound < story.entries.count, story.entries[first.upperBound].event.begins else {
                return nil
            }
            let second = story.unit(at: first.upperBound)
            guard story.duration(of: first.lowerBound..<second.upperBound) == .zero else { return nil }
            changed.entries.replaceSubrange(
                first.lowerBound..<second.upperBound, with: story.entries[second] + story.entries[first])
            return (changed, story.isHeard(place) && story.mustKeepOrder(first.lowerBound, second.lowerBound))
        case .wrongMode:
            guard case .callBegan(var call) = event else { return nil }
            call.mode = call.mode == "default" ? "tracking" : "default"
            changed.entries[place].event = .callBegan(call)
            return (changed, true)
        case .wrongRun:
            guard case .runBegan(let mode) = event else { return nil }
            let (unit, other) = (story.unit(at: place), mode == "default" ? "tracking" : "default")
            changed.entries[unit.lowerBound].event = .runBegan(other)
            changed.entries[unit.upperBound - 1].event = .runEnded(other)
            var isRefused = false
            var index = unit.lowerBound + 1
            while index < unit.upperBound - 1 {
                if case .callBegan(var call) = story.entries[index].event {
                    isRefused = isRefused || call.isOnlyIn(mode)
                    call.mode = other
                    changed.entries[index].event = .callBegan(call)
                }
                index = story.unit(at: index).upperBound
            }
            return (changed, isRefused)
        }
    }
}

extension FlightStory.Event {
    /// `true` if a unit begins with the event.
    fileprivate var begins: Bool {
        switch self {
        case .runBegan, .callBegan, .slept: true
        case .runEnded, .callEnded, .caused: false
        }
    }
}

extension FlightStory.Call {
    fileprivate var isObserver: Bool { handler?.kind == .observer }
    fileprivate var isBlock: Bool { handler?.kind == .block }
    fileprivate var isTimer: Bool { handler?.kind == .timer || handler?.kind == .delayedCall }
    /// `true` for a timer, and for a block of the program: blocks of tasks have no number.
    fileprivate var isCausedOnce: Bool { isTimer || (isBlock && number != nil) }

    /// The number of the event's step in a pass, for calls after the sleep.
    fileprivate var rank: Int {
        switch handler?.kind {
        case .descriptor: 1
        case .block: 2
        default: 0
        }
    }

    fileprivate func isOnlyIn(_ mode: String) -> Bool {
        guard let handler else { return false }
        if handler.kind == .delayedCall { return mode == "default" }
        let digit =
            handler.kind == .block ? handler.origin.last : handler.name?.split(separator: " ").dropFirst().first?.first
        return digit == (mode == "default" ? "1" : "2")
    }
}

extension FlightStory {
    fileprivate func duration(of unit: Range<Int>) -> Duration {
        if case .slept(let duration, _) = entries[unit.lowerBound].event { return duration }
        return entries[unit.upperBound - 1].time - entries[unit.lowerBound].time
    }

    /// Returns the calls and runs under way at a place, the innermost first.
    private func underWay(at place: Int) -> [Event] {
        var (depth, found): (Int, [Event]) = (0, [])
        for entry in entries[..<place].reversed() {
            switch entry.event {
            case .runEnded, .callEnded: depth += 1
            case .runBegan, .callBegan:
                if depth == 0 { found.append(entry.event) }
                depth = max(0, depth - 1)
            case .slept, .caused: break
            }
        }
        return found
    }

    /// Returns `true` if a run is the innermost thing under way.
    fileprivate func isInRun(_ place: Int) -> Bool {
        if case .runBegan = underWay(at: place).first { true } else { false }
    }

    /// Returns `true` if no observer is under way: a run nested in one does not call it.
    fileprivate func isHeard(_ place: Int) -> Bool {
        !underWay(at: place).contains { if case .callBegan(let call) = $0 { call.isObserver } else { false } }
    }

    /// Returns `true` if two neighbours at one time can only come in this order.
    fileprivate func mustKeepOrder(_ first: Int, _ second: Int) -> Bool {
        guard isInRun(first) else { return false }
        guard case .callBegan(let one) = entries[first].event, case .callBegan(let other) = entries[second].event else {
            return true
        }
        if one.isObserver || other.isObserver { return one.handler != other.handler }
        if one.isBlock && other.isBlock { return one.isCausedOnce && other.isCausedOnce }
        if let early = one.lateness, let late = other.lateness { return early != late }
        return isAfterWaiting(first) && one.rank != other.rank
    }

    /// Returns `true` if the last observer called before the place, in its run, heard of the end of a sleep.
    private func isAfterWaiting(_ place: Int) -> Bool {
        var depth = 0
        for index in (0..<place).reversed() {
            switch entries[index].event {
            case .runEnded, .callEnded: depth += 1
            case .callBegan(let call):
                depth -= 1
                if depth == 0, call.isObserver { return call.handler?.name == "afterWaiting" }
            case .runBegan: depth -= 1
            case .slept, .caused: break
            }
            if depth < 0 { return false }
        }
        return false
    }
}
