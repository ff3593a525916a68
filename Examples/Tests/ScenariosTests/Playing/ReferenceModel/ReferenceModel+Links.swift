import Scenarios

/// Display links: R192–R205, and rules 27 and 33 of the format.
extension ReferenceModel {
    /// The state of a link besides its item.
    struct LinkState {
        var entry: Scenario.LinkEntry
        /// An index into `items`.
        var item: Int
        /// The number of frames from one call to the next.
        var step: Int64
        /// The first turn since the previous call, past or future, as a frame.
        var turn: Int64 = 0
        /// The frame that the link waits for: the turn, or a later one.
        var aim: Int64 = 0
        /// `true` if the link's call has missed its frame, and has been put off to a later one; that happens once
        /// (R203).
        var isPutOff = false
        var callCount = 0
        var isPaused = false
        var isValid = true
        /// The time of the meter's last reading, and the frames since.
        var meterBegin: Int64?
        var meterCount: Int64 = 0

        /// Returns the date of frame k, at ⌊k s / rate⌋.
        func date(of frame: Int64) -> Int64 { frame * 1_000_000_000 / Int64(entry.rate) }

        /// Returns the latest frame whose date is not later than `time`.
        func frame(at time: Int64) -> Int64 {
            var frame = time / 1_000_000_000 * Int64(entry.rate)
            while date(of: frame + 1) <= time { frame += 1 }
            return frame
        }
    }

    mutating func add(_ entry: Scenario.LinkEntry) {
        let item = makeItem(.link(links.count), isEverywhere: false)
        links.append(LinkState(entry: entry, item: item, step: Self.step(of: entry)))
        let link = links.count - 1
        changeModes(of: link) { model in
            for mode in entry.modes { model.add(item, to: mode) }
        }
    }

    /// Returns the n whose rate / n comes nearest to the preferred rate; of two equally near, the smaller (R200).
    private static func step(of entry: Scenario.LinkEntry) -> Int64 {
        guard entry.preferred > 0 else { return 1 }
        var best = 1
        // |rate / n - preferred|, without dividing.
        func isNearer(_ n: Int, than m: Int) -> Bool {
            abs(entry.rate - entry.preferred * n) * m < abs(entry.rate - entry.preferred * m) * n
        }
        for n in 1...entry.rate where isNearer(n, than: best) { best = n }
        return Int64(best)
    }

    func validLink(named name: String) -> Int? {
        links.firstIndex { $0.entry.name == name && $0.isValid }
    }

    // MARK: Modes and pauses

    /// Changes modes; with the last of them the link leaves the loop, and with the first it begins anew (R194, R205).
    mutating func changeModes(of link: Int, _ change: (inout ReferenceModel) -> Void) {
        let item = links[link].item
        let wasInLoop = isInLoop(item)
        change(&self)
        if isInLoop(item), !wasInLoop, !links[link].isPaused { begin(link) }
        if !isInLoop(item) { items[item].arming = nil }
    }

    /// Returns `true` if a link is in the loop. A link added through the common modes is, even if each of them has been
    /// taken away.
    private func isInLoop(_ item: Int) -> Bool { !items[item].joinings.isEmpty || items[item].isCommon }

    /// Begins a link, whose first call is in the first frame after now.
    private mutating func begin(_ link: Int) {
        setTurn(links[link].frame(at: now) + 1, link)
        rearm(links[link].item, at: links[link].date(of: links[link].aim))
    }

    private mutating func setTurn(_ frame: Int64, _ link: Int) {
        links[link].turn = frame
        links[link].aim = frame
        links[link].isPutOff = false
    }

    /// Pauses or resumes a link. Frames during a pause are neither made up nor counted (R197).
    mutating func setPaused(_ isPaused: Bool, _ link: Int) {
        guard links[link].isPaused != isPaused else { return }
        links[link].isPaused = isPaused
        if isPaused {
            items[links[link].item].arming = nil
        } else if isInLoop(links[link].item) {
            begin(link)
        }
    }

    mutating func invalidate(link: Int) {
        links[link].isValid = false
        items[links[link].item].arming = nil
        note(.invalidated(name: links[link].entry.name))
    }

    // MARK: Calling

    /// Calls a link in the frame that it waits for, or puts the call off, once, to the next frame if this one is over.
    ///
    /// - Returns: `true` if the link was called.
    mutating func callInFrame(_ link: Int) -> Bool {
        let state = links[link]
        let frame = state.frame(at: now)
        if frame > state.aim, !state.isPutOff {
            links[link].isPutOff = true
            links[link].aim = frame + 1
            rearm(state.item, at: state.date(of: frame + 1))
            return false
        }
        // The turns before this frame are lost.
        let dropped = stride(from: state.turn, to: frame, by: Int(state.step)).reduce(0) { count, _ in count + 1 }
        links[link].callCount += 1
        note(
            .frame(
                name: state.entry.name, count: links[link].callCount, mode: runningModes.last ?? "default",
                timestamp: state.date(of: frame), dropped: Int64(dropped)))
        if state.entry.hasMeter { measure(link, state.date(of: frame)) }
        now += state.entry.busy
        // A turn that has passed meanwhile is not late but lost: the link waits for a future frame.
        setTurn(frame + state.step, link)
        links[link].aim = max(links[link].turn, state.frame(at: now) + 1)
        rearm(state.item, at: state.date(of: links[link].aim))
        return true
    }

    /// Counts frames, and divides them by the time, once a second at most, rounded half up.
    private mutating func measure(_ link: Int, _ timestamp: Int64) {
        guard let begin = links[link].meterBegin else { return links[link].meterBegin = timestamp }
        links[link].meterCount += 1
        let (elapsed, count) = (timestamp - begin, links[link].meterCount)
        guard elapsed >= 1_000_000_000 else { return }
        links[link].meterBegin = timestamp
        links[link].meterCount = 0
        let rate = (2 * count * 1_000_000_000 + elapsed) / (2 * elapsed)
        note(.reading(name: links[link].entry.name, text: "\(rate) FPS"))
    }
}
