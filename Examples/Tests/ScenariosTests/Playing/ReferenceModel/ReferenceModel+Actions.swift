import Scenarios

extension ReferenceModel {
    /// Performs an action; an action on an invalid item does nothing (rule 18).
    mutating func perform(_ verb: Scenario.ActionEntry.Verb) {
        switch verb {
        case .invalidate(let name):
            if let timer = validTimer(named: name) { invalidate(timer) }
            if let link = validLink(named: name) { invalidate(link: link) }
        case .fire(let name):
            if let timer = validTimer(named: name) { fire(timer, manually: true) }
        case .setFireDate(let name, let date):
            if let timer = validTimer(named: name) { setFireDate(of: timer, to: date) }
        case .drop(let name):
            drop(target: name)
        case .addMode(let mode, let name):
            if let timer = validTimer(named: name) { add(timers[timer].item, to: mode) }
            if let link = validLink(named: name) {
                changeModes(of: link) { $0.add($0.links[link].item, to: mode) }
            }
        case .removeMode(let mode, let name):
            if let timer = validTimer(named: name) { remove(timers[timer].item, from: mode) }
            if let link = validLink(named: name) {
                changeModes(of: link) { $0.remove($0.links[link].item, from: mode) }
            }
        case .makeCommon(let mode):
            makeCommon(mode)
        case .activate(let name):
            if let source = source(named: name) { activate(source) }
        case .suspend(let name):
            if let source = source(named: name) { suspend(source) }
        case .resume(let name):
            if let source = source(named: name) { resume(source) }
            if let link = validLink(named: name) { setPaused(false, link) }
            if let countdown = countdown(named: name) { resume(countdown: countdown) }
        case .pause(let name):
            if let link = validLink(named: name) { setPaused(true, link) }
            if let countdown = countdown(named: name) { pause(countdown: countdown) }
        case .cancel(let name):
            if let source = source(named: name) { cancel(source) }
            cancel(named: name)
        }
    }

    func validTimer(named name: String) -> Int? {
        timers.firstIndex { $0.entry.name == name && $0.isValid }
    }

    /// Starts a new grid and takes a new place in the order; a past date is kept as given (rule 15).
    mutating func setFireDate(of timer: Int, to date: Int64) {
        timers[timer].anchor = date
        timers[timer].pointsCounted = 0
        rearm(timers[timer].item, at: date)
    }

    /// Releases the player's hold on a target (rules 8, 23); a second call does nothing (rule 18).
    mutating func drop(target name: String) {
        dropTargetOfSource(name)
        guard let timer = timers.firstIndex(where: { $0.entry.target?.name == name }),
            let target = timers[timer].entry.target, timers[timer].playerHoldsTarget
        else { return }
        timers[timer].playerHoldsTarget = false
        switch target.hold {
        case .strong:
            if !timers[timer].isValid { note(.deinit(name: name)) }
        case .weak:
            note(.deinit(name: name))
            if timers[timer].isValid { invalidate(timer) }
        }
    }
}

// MARK: - Modes

extension ReferenceModel {
    /// Adds an item to a mode, or for `common` to all that are common now and to those made common later (rule 16).
    mutating func add(_ item: Int, to mode: String) {
        guard mode == "common" else {
            join(item, mode)
            return
        }
        items[item].isCommon = true
        for member in commonModes { join(item, member) }
    }

    /// Lets an item join a mode. An existing membership stays as it is, so that it counts as unbroken in the present
    /// pass.
    mutating func join(_ item: Int, _ mode: String) {
        if items[item].joinings[mode] == nil { items[item].joinings[mode] = nextNumber() }
    }

    /// Takes an item out of one mode, or for `common`, if it was added so, out of all that are common now (rule 16).
    mutating func remove(_ item: Int, from mode: String) {
        guard mode == "common" else {
            items[item].joinings[mode] = nil
            return
        }
        guard items[item].isCommon else { return }
        items[item].isCommon = false
        for member in commonModes { items[item].joinings[member] = nil }
    }

    /// Brings all common items into a mode that was not common before.
    mutating func makeCommon(_ mode: String) {
        guard commonModes.insert(mode).inserted else { return }
        for item in items.indices where items[item].isCommon { join(item, mode) }
    }
}
