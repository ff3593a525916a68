import Scenarios

extension RandomScenario {
    mutating func addActions() {
        let at = makeActionTime()
        for verb in makeVerbs(at: at) { actions.append(Scenario.ActionEntry(at: at, verb: verb)) }
    }

    /// Makes verbs for one of the scenario's items, or for a mode.
    private mutating func makeVerbs(at time: Int64) -> [Scenario.ActionEntry.Verb] {
        let counts = [timers.count, sources.count, links.count, named.count, countdowns.count]
        var index = Int(random.number(in: 0...Int64(max(0, counts.reduce(0, +) - 1))))
        guard counts.contains(where: { $0 > 0 }), !random.chance(10) else {
            return [.makeCommon(random.pick(Self.runnableModes))]
        }
        if index < timers.count { return makeVerbs(for: timers[index], at: time) }
        index -= timers.count
        if index < sources.count { return makeVerbs(for: sources[index]) }
        index -= sources.count
        if index < links.count { return makeVerbs(for: links[index]) }
        index -= links.count
        if index < named.count { return [.cancel(item: named[index].name)] }
        return makeVerbs(for: countdowns[index - named.count])
    }

    private mutating func makeVerbs(for source: Scenario.SourceEntry) -> [Scenario.ActionEntry.Verb] {
        let name = source.name
        if !source.isActive, random.chance(30) { return [.activate(source: name)] }
        switch random.number(in: 0...9) {
        case 0: return [.activate(source: name)]
        case 1, 2: return [.suspend(source: name)]
        case 3, 4: return [.resume(item: name)]
        case 5: return [.suspend(source: name), .resume(item: name)]
        case 6: return [.cancel(item: name)]
        case 7: return [.cancel(item: name), random.pick([.suspend(source: name), .resume(item: name)])]
        default:
            guard let target = source.target else { return [.suspend(source: name), .suspend(source: name)] }
            return [.drop(target: target.name)]
        }
    }

    private mutating func makeVerbs(for link: Scenario.LinkEntry) -> [Scenario.ActionEntry.Verb] {
        let name = link.name
        let mode =
            !link.modes.isEmpty && random.chance(60)
            ? random.pick(link.modes) : random.pick(Self.runnableModes + ["common"])
        switch random.number(in: 0...9) {
        case 0: return [.invalidate(item: name)]
        case 1, 2: return [.pause(item: name)]
        case 3, 4: return [.resume(item: name)]
        case 5: return [.pause(item: name), .resume(item: name)]
        case 6: return [.addMode(mode, item: name)]
        case 7, 8: return [.removeMode(mode, item: name)]
        default: return [.removeMode(mode, item: name), .addMode(random.pick([mode, "common"]), item: name)]
        }
    }

    private mutating func makeVerbs(for countdown: Scenario.CountdownEntry) -> [Scenario.ActionEntry.Verb] {
        let name = countdown.name
        return random.pick([
            [.resume(item: name)], [.resume(item: name)], [.resume(item: name)], [.pause(item: name)],
            [.pause(item: name)], [.pause(item: name), .resume(item: name)],
            [.resume(item: name), .pause(item: name)],
        ])
    }

    /// Makes one verb, usually; sometimes a pair that breaks a membership and may restore it at the same time.
    mutating func makeVerbs(
        for timer: Scenario.TimerEntry, at time: Int64
    ) -> [Scenario.ActionEntry.Verb] {
        let name = timer.name
        switch random.number(in: 0...12) {
        case 0: return [.invalidate(item: name)]
        case 1, 2: return [.fire(timer: name)]
        case 3, 4, 5: return [.setFireDate(timer: name, to: makeFireDate(near: time))]
        case 6: return [.addMode(makeMemberMode(of: timer), item: name)]
        case 7, 8: return [.removeMode(makeMemberMode(of: timer), item: name)]
        case 9:
            let mode = makeMemberMode(of: timer)
            let plainMode = mode == "common" ? random.pick(Self.runnableModes) : mode
            let restorations: [Scenario.ActionEntry.Verb] = [
                .addMode(mode, item: name), .addMode("common", item: name), .makeCommon(plainMode),
            ]
            return [.removeMode(mode, item: name), random.pick(restorations)]
        default:
            guard let target = timer.target else { return [.addMode(makeMemberMode(of: timer), item: name)] }
            return [.drop(target: target.name)]
        }
    }

    /// Makes a fire date that is past, exactly now, or future, equally often.
    mutating func makeFireDate(near time: Int64) -> Int64 {
        switch random.number(in: 0...2) {
        case 0: max(0, time - makeStretch(steps: 8))
        case 1: time
        default: time + makeStretch(steps: 8)
        }
    }

    /// Makes a mode, half of the time one of the timer's, so that a removal has an effect.
    mutating func makeMemberMode(of timer: Scenario.TimerEntry) -> String {
        if !timer.modes.isEmpty, random.chance(50) { return random.pick(timer.modes) }
        return random.pick(Self.runnableModes + ["common"])
    }
}
