extension ModelLoop {
    func isEmpty(_ mode: String) -> Bool {
        !items.values.contains { $0.isValid && $0.keepsModesAlive && $0.isIn(mode) }
            && !blocks.contains { runsBlock(in: mode, $0.modes) }
    }

    func run(in mode: String, until limit: Int?, returnsAfterSource: Bool) -> String {
        runCount += 1
        runs.append(
            Run(
                number: runCount, mode: mode, limit: limit, isPoll: limit.map { $0 <= now } ?? false,
                returnsAfterSource: returnsAfterSource))
        defer { runs.removeLast() }
        collectMail()
        let wasStoppedBefore = runs.last!.isStopped
        runs[runs.count - 1].isStopped = false
        if isEmpty(mode) { return "finished" }
        notify(.entry)
        var result = runs.last!.isStopped ? "stopped" : nil
        if wasStoppedBefore { runs[runs.count - 1].isStopped = true }
        while result == nil { result = pass() }
        notify(.exit)
        return result!
    }

    /// Calls the observers that are in the mode now, by order and then in the order in which they entered it.
    func notify(_ activity: ActivityPlan) {
        let mode = currentMode!
        var called: [(order: Int, joined: Int, repeats: Bool, number: Int)] = []
        for item in items.values where item.isValid && item.isIn(mode) {
            guard case .observer(let activities, let repeats, let order) = item.plan, activities.contains(activity)
            else { continue }
            called.append((order, item.joined(mode), repeats, item.number))
        }
        for (_, _, repeats, number) in called.sorted(by: { ($0.order, $0.joined) < ($1.order, $1.joined) }) {
            guard items[number]!.isValid, !items[number]!.isCalling else { continue }
            items[number]!.isCalling = true
            program?.called(number, activity.rawValue)
            items[number]!.isCalling = false
            if !repeats { invalidate(number) }
        }
    }

    /// Makes one pass, with the numbers of the page.
    func pass() -> String? {
        let (run, mode) = (runs.last!, currentMode!)
        isWakeUpPending = false
        // 1.
        notify(.beforeTimers)
        notify(.beforeSources)
        // 2.
        collectMail()
        var didWork = performBlocks()
        // 3.
        let handledSource = serveSources()
        if handledSource {
            didWork = true
            _ = performBlocks()
        }
        // 4.
        let announcesSleep = !handledSource && sleepEnd() != nil
        if announcesSleep { notify(.beforeWaiting) }
        // 5.
        var isStarved = false
        if announcesSleep, let end = sleepEnd() {
            if let end { now = max(now, end) } else { isStarved = true }
        }
        if announcesSleep { notify(.afterWaiting) }
        // 6.
        collectMail()
        let (reading, mark) = (now, next())
        // 7.
        while let due = firstDue(at: reading, before: mark) {
            callTimed(due)
            didWork = true
        }
        // 8.
        if performBlocks() { didWork = true }
        // 9.
        if handledSource && run.returnsAfterSource { return "handledSource" }
        if run.isPoll { return "timedOut" }
        if let limit = run.limit, now > limit || (reading >= limit && !didWork) { return "timedOut" }
        if isStarved && !didWork { return "starved" }
        if runs.last!.isStopped { return "stopped" }
        return isEmpty(mode) && mail.isEmpty ? "finished" : nil
    }

    /// The end of the sleep that may begin now: `nil` if none may, and `.some(nil)` if nothing ends it.
    func sleepEnd() -> Int?? {
        let (run, mode) = (runs.last!, currentMode!)
        guard !run.isPoll, !run.isStopped, !isWakeUpPending, mail.isEmpty, !isEmpty(mode) else { return nil }
        guard !blocks.contains(where: { runsBlock(in: mode, $0.modes) }) else { return nil }
        let dates = items.values.filter { $0.isTimed && $0.isValid && $0.isIn(mode) && !$0.isCalling }.compactMap(
            \.date)
        let end = [dates.min(), run.limit].compactMap(\.self).min()
        guard let end else { return .some(nil) }
        return end > now ? .some(end) : nil
    }

    func firstDue(at reading: Int, before mark: Int) -> Int? {
        let mode = currentMode!
        return items.values.filter { item in
            guard item.isTimed, item.isValid, item.isIn(mode), !item.isCalling, let date = item.date else {
                return false
            }
            return date <= reading && item.armed < mark && item.joined(mode) < mark
        }.min { ($0.date!, $0.place!) < ($1.date!, $1.place!) }?.number
    }

    func performBlocks() -> Bool {
        let mode = currentMode!
        let batch = blocks.filter { runsBlock(in: mode, $0.modes) }
        blocks.removeAll { runsBlock(in: mode, $0.modes) }
        var done = 0
        var end: Int?
        for (number, _, _) in batch {
            program?.called(number, "block")
            done += 1
            guard [1, 2, 4, 8, 16, 32].contains(done) || done.isMultiple(of: 64) else { continue }
            end = end ?? now + 5
            if now >= end! || done >= 1024, !runs.last!.isStopped { break }
        }
        blocks = (batch[done...] + blocks).sorted { $0.place < $1.place }
        return done > 0
    }

    func serveSources() -> Bool {
        let mode = currentMode!
        var due: [(order: Int, signalled: Int, number: Int)] = []
        for item in items.values where item.isValid && item.isIn(mode) && !item.isCalling {
            if case .source(let order) = item.plan, let signalled = item.signalled {
                due.append((order, signalled, item.number))
            }
        }
        var handled = false
        for (_, _, number) in due.sorted(by: { ($0.order, $0.signalled) < ($1.order, $1.signalled) }) {
            guard items[number]!.isValid, items[number]!.signalled != nil else { continue }
            items[number]!.signalled = nil
            items[number]!.isCalling = true
            program?.called(number, "source")
            items[number]!.isCalling = false
            handled = true
            if runs.last!.returnsAfterSource { break }
        }
        return handled
    }
}
