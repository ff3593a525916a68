import Scenarios

extension ReferenceModel {
    /// The state of a timer besides its item.
    struct TimerState {
        var entry: Scenario.TimerEntry
        /// An index into `items`.
        var item: Int
        /// The first point of the current grid.
        var anchor: Int64
        /// The number of points of the current grid that had passed at its latest scheduled fire.
        var pointsCounted: Int64 = 0
        var fireCount = 0
        var isValid = true
        /// `true` while the player still holds the target; always for a timer without one.
        var playerHoldsTarget = true

        /// The interval, with the default of R98, so that a scenario built by hand means the same as a file.
        var interval: Int64 { entry.interval > 0 ? entry.interval : 100_000 }

        /// Returns the number of points of the current grid at or before `time`, which is not before the anchor.
        func points(upTo time: Int64) -> Int64 { (time - anchor) / interval + 1 }
    }

    /// Calls a timer, because its date has come or by hand.
    ///
    /// A call by hand leaves the schedule and the grid alone (rule 22). A one-shot is invalid after either.
    mutating func fire(_ timer: Int, manually: Bool) {
        let missed = manually ? 0 : countMissedPoints(of: timer)
        timers[timer].fireCount += 1
        let state = timers[timer]
        note(
            .fire(
                name: state.entry.name, count: state.fireCount, mode: runningModes.last ?? "default",
                due: items[state.item].date, missed: missed, manual: manually))
        now += state.entry.busy
        if !state.entry.repeats {
            invalidate(timer)
        } else if !manually {
            armForNextPoint(timer)
        }
    }

    /// Returns the number of grid points up to now that had no scheduled fire of their own (rule 21); counts them, and
    /// the point fired now.
    mutating func countMissedPoints(of timer: Int) -> Int64 {
        guard timers[timer].entry.repeats else { return 0 }
        let points = timers[timer].points(upTo: now)
        defer { timers[timer].pointsCounted = points }
        return points - timers[timer].pointsCounted - 1
    }

    /// Arms a repeating timer for the first grid point strictly after now, the end of its callback (rules 12, 14).
    mutating func armForNextPoint(_ timer: Int) {
        let state = timers[timer]
        rearm(state.item, at: state.anchor + state.points(upTo: now) * state.interval)
    }

    /// Ends a valid timer, and with it its hold on a strong target (rule 23).
    mutating func invalidate(_ timer: Int) {
        timers[timer].isValid = false
        items[timers[timer].item].arming = nil
        note(.invalidated(name: timers[timer].entry.name))
        guard let target = timers[timer].entry.target, target.hold == .strong else { return }
        if !timers[timer].playerHoldsTarget { note(.deinit(name: target.name)) }
    }
}
