public import RunLoopCore
internal import Synchronization

extension Simulation {
    /// Chooses one of several possibilities.
    ///
    /// An explored simulation tries each of them: which message is lost, when a user drags, how many clients there are.
    /// Other simulations take the first one, which should therefore be the usual case.
    ///
    /// ```swift
    /// let pause = simulation.choice("the pause before the retry", of: [.seconds(1), .zero, .seconds(60)])
    /// ```
    ///
    /// On a thread of the simulation; O(1).
    ///
    /// - Parameters:
    ///   - what: the subject of the choice, for reports.
    ///   - options: the possibilities; at least one.
    public func choice<Option>(_ what: String, of options: [Option]) -> Option {
        require(!options.isEmpty, "a choice needs something to choose from; \(quoted(what)) has nothing")
        guard let schedule = timeline.schedule else { return options[0] }
        let choice = schedule.choose(what, of: options.count, on: timeline.asker) { "\(options[$0])" }
        note("\(what): \(options[choice])")
        return options[choice]
    }

    /// Whether something unusual, such as a fault, happens; only in an explored simulation may it happen. See
    /// ``choice(_:of:)``.
    public func mayHappen(_ what: String) -> Bool {
        guard let schedule = timeline.schedule else { return false }
        let happens = schedule.mayHappen(what, on: timeline.asker)
        note("\(what): \(happens)")
        return happens
    }

    /// Registers something that may happen, in an explored simulation, at any moment between two handlers or steps of
    /// tasks, and before or after each call to a disk or to the network: a host crashes, a link is cut, a clock is set.
    /// In other simulations it never happens.
    ///
    /// ```swift
    /// simulation.mayHappen("the store crashes") {
    ///     store.crash()
    ///     store.start()
    /// }
    /// ```
    ///
    /// On a thread of the simulation; O(1).
    ///
    /// - Parameters:
    ///   - what: the event, for reports.
    ///   - most: how often it may happen.
    ///   - action: performs it. It belongs to no thread, and so must not run a loop or wait.
    public func mayHappen(_ what: String, atMost most: Int = 1, _ action: @escaping @Sendable () -> Void) {
        guard timeline.schedule != nil else { return }
        timeline.occasions.withLock { $0.append(Occasion(what: what, left: most, action: action)) }
        timeline.hasPlaces.store(true, ordering: .relaxed)
    }

    /// Registers a user's drag that may begin, in an explored simulation, at any moment between two handlers of the
    /// calling thread's loop in the default mode: the loop then runs nested in `mode` for `duration`, as by
    /// ``drag(from:until:mode:)``.
    ///
    /// - Parameters:
    ///   - duration: how long a drag lasts.
    ///   - mode: the mode in which the loop runs meanwhile.
    ///   - most: how many drags there may be.
    ///   - around: called for each drag, with a closure that runs the loop and must be called. It can note when the drag
    ///     begins and ends.
    public func mayDrag(
        for duration: Duration, mode: RunLoop.Mode = .tracking, atMost most: Int = 1,
        around: @escaping (() -> Void) -> Void = { $0() }
    ) {
        guard let schedule = timeline.schedule else { return }
        let (loop, thread) = place
        let what = "a drag begins"
        var left = most
        let moments = Observer(activities: .beforeWaiting) { [unowned self, unowned loop] observer, _ in
            let last = (loop.schedule as? LoopSchedule)?.lastCall
            guard schedule.mayHappen(what, atMost: left, after: last, on: (thread.number, thread.name)) else { return }
            note(what)
            left -= 1
            if left == 0 { observer.invalidate() }
            loop.perform(inModes: .default) {
                around {
                    let finger = CustomSource()
                    loop.add(finger, forMode: RunLoop.Modes(mode))
                    loop.run(in: mode, until: self.now + duration)
                    finger.invalidate()
                }
            }
        }
        if most > 0 { loop.add(moments, forMode: .default) }
    }

    // MARK: Places within handlers

    /// Whether something may happen within handlers, before and after calls that reach the world: in an explored
    /// simulation, once it has events that may happen at any moment, or a machine with several processes.
    package var hasPlaces: Bool { timeline.hasPlaces.load(ordering: .relaxed) }

    /// Makes calls that reach the world places where something may happen, if the simulation is explored.
    ///
    /// - Returns: whether it is explored.
    package func makePlaces() -> Bool {
        guard timeline.schedule != nil else { return false }
        timeline.hasPlaces.store(true, ordering: .relaxed)
        return true
    }

    /// A place within a handler of the calling thread, where events that may happen at any moment are tried, and threads
    /// of other processes may go first. If the process of the thread is killed there, the call does not return.
    ///
    /// - Parameter place: the name, for example `before store: write /log`.
    package func reach(_ place: String) {
        guard let driver = RunLoop.installed?.virtualDriver, driver.timeline === timeline else { return }
        timeline.reach(place, driver.thread)
    }

    /// Whether a fault of a machine happens in an explored simulation, and which; see `Schedule.fault`.
    package func fault(
        _ what: String, of kind: String, atMost most: Int, among count: Int = 2, on machine: String,
        words: ((Int) -> String)? = nil
    ) -> Int {
        guard let schedule = timeline.schedule else { return 0 }
        let choice = schedule.fault(what, of: kind, atMost: most, among: count, words: words)
        if choice != 0 { note(what, of: machine) }
        return choice
    }

    /// A random value for a part of the world that belongs to no thread. In an explored simulation it comes from the
    /// schedule, which may depart from the usual value.
    ///
    /// - Parameters:
    ///   - name: the place.
    ///   - what: the event, for example `tears a file`.
    ///   - drawn: the value that the seed gives.
    package func draw(
        _ name: String, _ what: @autoclosure () -> String, usual: Int, in range: ClosedRange<Int>, drawn: Int
    ) -> Int {
        guard let schedule = timeline.schedule else { return drawn }
        let what = what()
        let value = schedule.draw("\(name) \(what)", usual: usual, in: range, drawn: drawn)
        if value != usual { note("\(what): \(value)", of: name) }
        return value
    }

    /// The lateness of the latest fire, over the loops of all threads that have not ended; and, if the simulation is
    /// traced, the item that fired.
    package var latestFire: (lateness: Duration, item: String?) {
        let lateness = timeline.stands.compactMap { $0.loop?.with { $0.statistics.lateness.maximum } }.max() ?? .zero
        let named = timeline.latestFire.withLock(\.self)
        return (lateness, named?.lateness == lateness ? named?.item : nil)
    }
}
