extension Scenario {
    /// All modes of the scenario: default, and every name that occurs in it, each once.
    package var modes: [String] {
        var names = ["default"] + commonModes
        for timer in timers { names += timer.modes }
        for link in links { names += link.modes }
        for busy in self.busy { names += busy.modes }
        names += runs.map(\.mode)
        for action in actions {
            switch action.verb {
            case .addMode(let mode, _), .removeMode(let mode, _), .makeCommon(let mode): names.append(mode)
            case .invalidate, .fire, .setFireDate, .drop, .activate, .suspend, .resume, .pause, .cancel: break
            }
        }
        var seen = Set(["common"])
        return names.filter { seen.insert($0).inserted }
    }
}
