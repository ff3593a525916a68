public import RunLoopCore

extension Simulation {
    /// One of several possibilities.
    ///
    /// In a simulation that is explored each of them is tried: which message is lost, when a user drags, how many clients
    /// there are. Elsewhere it is the first one, which should therefore be what usually happens.
    ///
    /// ```swift
    /// let pause = simulation.choice("the pause before the retry", of: [.seconds(1), .zero, .seconds(60)])
    /// ```
    ///
    /// On a thread of the simulation; O(1).
    ///
    /// - Parameters:
    ///   - what: what is chosen, for reports.
    ///   - options: the possibilities; at least one.
    public func choice<Option>(_ what: String, of options: [Option]) -> Option {
        require(!options.isEmpty, "a choice needs something to choose from; \(quoted(what)) has nothing")
        guard let choices = timeline.choices else { return options[0] }
        let choice = choices.choose(what, of: options.count)
        note("\(what): \(options[choice])")
        return options[choice]
    }

    /// Whether something happens that usually does not, such as a fault. Elsewhere than in a simulation that is explored
    /// it never does. See ``choice(_:of:)``.
    public func mayHappen(_ what: String) -> Bool { choice(what, of: [false, true]) }

    /// In a simulation that is explored, something may happen at any moment between two handlers or steps of tasks: a host
    /// crashes, a link is cut, a clock is set. Elsewhere it never does.
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
    ///   - what: what happens, for reports.
    ///   - most: how often it may happen.
    ///   - action: makes it happen. It belongs to no thread, and so must not run a loop or wait.
    public func mayHappen(_ what: String, atMost most: Int = 1, _ action: @escaping @Sendable () -> Void) {
        guard timeline.choices != nil else { return }
        timeline.occasions.withLock { $0.append(Occasion(what: what, left: most, action: action)) }
    }

    /// In a simulation that is explored, a user may drag at any moment between two things that the calling thread's loop
    /// does in the default mode: the loop then runs nested in `mode` for `duration`, as by ``drag(from:until:mode:)``.
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
        let loop = self.loop
        var left = most
        let moments = Observer(activities: .beforeWaiting) { [unowned self, unowned loop] observer, _ in
            guard mayHappen("a drag begins") else { return }
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

    /// What comes of chance in a part of the world that is no thread's. In a simulation that is explored the schedule says
    /// it, which may depart from what usually does.
    ///
    /// - Parameters:
    ///   - name: where.
    ///   - what: says what happens, for example `tears a file`.
    ///   - usual: what usually comes of it.
    ///   - range: what may.
    ///   - drawn: what the seed says.
    package func draw(
        _ name: String, _ what: @autoclosure () -> String, usual: Int, in range: ClosedRange<Int>, drawn: Int
    ) -> Int {
        guard let choices = timeline.choices else { return drawn }
        let what = what()
        let value = choices.draw("\(name) \(what)", usual: usual, in: range, drawn: drawn)
        if value != usual { note("\(what): \(value)", of: name) }
        return value
    }

    /// How much later than its date the latest fire was, of the loops of all threads that have not ended; and, if the
    /// simulation is traced, whose that was.
    package var latestFire: (lateness: Duration, item: String?) {
        let lateness = timeline.stands.compactMap { $0.loop?.with { $0.statistics.lateness.maximum } }.max() ?? .zero
        let named = timeline.latestFire.withLock(\.self)
        return (lateness, named?.lateness == lateness ? named?.item : nil)
    }
}
