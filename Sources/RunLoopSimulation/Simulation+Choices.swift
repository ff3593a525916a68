@_spi(Ports) public import RunLoopCore
internal import Synchronization

extension Simulation {
    /// Chooses one of several options.
    ///
    /// An explored simulation tries each option: which message is lost, when a user drags, how many clients there are.
    /// Other simulations take the first one, which should therefore be the usual case.
    ///
    /// ```swift
    /// let pause = simulation.choice("the pause before the retry", of: [.seconds(1), .zero, .seconds(60)])
    /// ```
    ///
    /// Call on a thread of the simulation; O(1).
    ///
    /// - Parameters:
    ///   - what: the subject of the choice, for reports.
    ///   - options: the options; at least one.
    public func choice<Option>(_ what: String, of options: [Option]) -> Option {
        require(!options.isEmpty, "a choice needs something to choose from; \(quoted(what)) has nothing")
        guard let schedule = timeline.schedule else { return options[0] }
        let choice = schedule.choose(what, of: options.count, on: timeline.asker) { "\(options[$0])" }
        note("\(what): \(options[choice])")
        return options[choice]
    }

    /// Returns `true` if something unusual, such as a fault, is to happen; always `false` in a simulation that is not
    /// explored. See ``choice(_:of:)``.
    public func mayHappen(_ what: String) -> Bool {
        guard let schedule = timeline.schedule else { return false }
        let happens = schedule.mayHappen(what, on: timeline.asker)
        note("\(what): \(happens)")
        return happens
    }

    /// Registers an event that may happen, in an explored simulation, at any moment between two handlers or steps of
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
    /// Call on a thread of the simulation; O(1).
    ///
    /// - Parameters:
    ///   - what: the event, for reports.
    ///   - most: the largest number of times that the event may happen.
    ///   - action: performs the event. The action belongs to no thread, and so must not run a loop or wait.
    public func mayHappen(_ what: String, atMost most: Int = 1, _ action: @escaping @Sendable () -> Void) {
        guard timeline.schedule != nil else { return }
        timeline.occasions.withLock { $0.append(Occasion(what: what, left: most, action: action)) }
        timeline.hasPlaces.store(true, ordering: .relaxed)
    }

    /// Registers a user's drag that may begin, in an explored simulation, at any moment between two handlers of the
    /// calling thread's loop in the default mode: the loop then runs nested in `mode` for `duration`, as in
    /// ``drag(from:until:in:)``.
    ///
    /// - Parameters:
    ///   - duration: the length of a drag.
    ///   - mode: the mode in which the loop runs meanwhile.
    ///   - most: the largest number of drags.
    ///   - around: called for each drag, with a closure that runs the loop and must be called. Use it to note when the
    ///     drag begins and ends.
    public func mayDrag(
        for duration: Duration, in mode: RunLoop.Mode = .tracking, atMost most: Int = 1,
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

    /// `true` if events may happen within handlers, before and after calls that reach the world: in an explored
    /// simulation, once it has events that may happen at any moment, or a machine with several processes.
    @_spi(Ports) public var hasPlaces: Bool { timeline.hasPlaces.load(ordering: .relaxed) }

    /// Lets events happen at calls that reach the world, if the simulation is explored.
    ///
    /// - Returns: `true` if the simulation is explored.
    @_spi(Ports) public func makePlaces() -> Bool {
        guard timeline.schedule != nil else { return false }
        timeline.hasPlaces.store(true, ordering: .relaxed)
        return true
    }

    /// Marks a place within a handler of the calling thread, where events that may happen at any moment are tried, and
    /// threads of other processes may go first. If the process of the thread is killed there, the call does not return.
    ///
    /// - Parameter place: the name of the place, for example `before store: write /log`.
    @_spi(Ports) public func reach(_ place: String) {
        guard let driver = RunLoop.installed?.virtualDriver, driver.timeline === timeline else { return }
        timeline.reach(place, driver.thread)
    }

    /// `true` if the order of everything is chosen, wherever it is open.
    @_spi(Ports) public var isExplored: Bool { timeline.schedule != nil }

    /// Lets another thread that has something to do go first, if the simulation is explored and chooses that.
    @_spi(Ports) public func giveWay() {
        guard isExplored, let driver = RunLoop.installed?.virtualDriver, driver.timeline === timeline
        else { return }
        timeline.giveWay(driver.thread)
    }

    /// Returns the fault of a machine that happens here in an explored simulation; zero for none. See `Schedule.fault`.
    @_spi(Ports) public func fault(
        _ what: String, of kind: String, atMost most: Int, among count: Int = 2, on machine: String,
        words: ((Int) -> String)? = nil
    ) -> Int {
        guard let schedule = timeline.schedule else { return 0 }
        let choice = schedule.fault(what, of: kind, atMost: most, among: count, words: words)
        if choice != 0 { note(what, of: machine) }
        return choice
    }

    /// Returns a random value for a part of the world that belongs to no thread. In an explored simulation the value
    /// comes from the schedule, which may depart from the usual value.
    ///
    /// - Parameters:
    ///   - name: the name of that part.
    ///   - what: the event, for example `tears a file`.
    ///   - drawn: the value that the seed gives.
    @_spi(Ports) public func draw(
        _ name: String, _ what: @autoclosure () -> String, usual: Int, in range: ClosedRange<Int>, drawn: Int
    ) -> Int {
        guard let schedule = timeline.schedule else { return drawn }
        let what = what()
        let value = schedule.draw("\(name) \(what)", usual: usual, in: range, drawn: drawn)
        if value != usual { note("\(what): \(value)", of: name) }
        return value
    }

    /// The lateness of the latest fire, over the loops of all threads that have not ended, and the item that fired if
    /// the simulation is traced.
    @_spi(Ports) public var latestFire: (lateness: Duration, item: String?) {
        let lateness = timeline.stands.compactMap { $0.loop?.with { $0.statistics.lateness.maximum } }.max() ?? .zero
        let named = timeline.latestFire.withLock(\.self)
        return (lateness, named?.lateness == lateness ? named?.item : nil)
    }
}
