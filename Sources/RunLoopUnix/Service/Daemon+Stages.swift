@_spi(Ports) internal import RunLoopKit

extension Daemon {
    // MARK: Running

    /// Runs the loop until the daemon has stopped.
    ///
    /// A stop of this run by ``/RunLoopKit/RunLoop/stop()``, a remote or a ``/RunLoopKit/LoopThread`` counts as
    /// ``stop(status:)``. When the daemon has stopped, it stops the innermost run, and each enclosing run in the
    /// daemon's mode once. It waits for all other runs.
    ///
    /// - Parameter announcesReady: whether to notify the service manager in the first pass that the service is ready.
    /// - Returns: the exit status: the first nonzero status that was passed to ``stop(status:)``, or else zero.
    @available(*, noasync, message: "a run loop blocks its thread; await withLoop, or run it on a LoopThread")
    public func run(announcesReady: Bool = true) -> Int32 {
        let keepAlive = CustomSource()
        keepAlive.name = "daemon"
        loop.add(keepAlive, forMode: RunLoop.Modes(mode))
        let observer = makeObserver()
        loop.add(observer, forMode: RunLoop.Modes(mode))
        defer {
            keepAlive.invalidate()
            observer.invalidate()
        }
        if announcesReady, state == .running { later { $0.tell(ServiceManager.ready) } }
        while true {
            if case .stopped(let status) = state { return status }
            let result = loop.run(in: mode)
            if case .stopped(let status) = state { return status }
            // The thread is ending, so nothing that takes time can happen.
            if result == .starved && loop.isEnding { return 0 }
            require(
                result != .starved,
                "on virtual time no event is left that could stop the daemon; schedule a call of stop()")
            if result == .stopped { stop() }
        }
    }

    /// Returns an observer that ends the daemon's run once it has stopped, even if nested runs kept it from noticing.
    private func makeObserver() -> Observer {
        var depth = 0
        var lowestStopped = Int.max
        return Observer(activities: [.entry, .beforeTimers, .exit], repeats: true) { [self] _, activity in
            if activity == .entry { depth += 1 }
            // Stops each run once, because `RunLoop.run()` continues after a stop and would spin on repeated stops.
            if activity == .beforeTimers, case .stopped = state, depth < lowestStopped {
                lowestStopped = depth
                loop.stop()
            }
            if activity == .exit { depth -= 1 }
        }
    }

    // MARK: Stopping

    /// Starts stopping the daemon, or hurries a stop in progress.
    ///
    /// Returns at once. Call it on the loop's thread; from other threads use ``Remote/stop(status:)``.
    ///
    /// - Parameter status: the value for `run(announcesReady:)` to return. The first nonzero status counts.
    public func stop(status: Int32 = 0) {
        if self.status == 0 { self.status = status }
        switch state {
        case .running, .reloading:
            // The stop does not wait for a pending reload.
            cancelTasks()
            pending = [:]
            state = .stopping(.stopAccepting)
            tell(ServiceManager.stopping)
            setLimit(drainLimit)
            later { $0.begin(.stopAccepting) }
        case .stopping: hurry()
        case .stopped: break
        }
    }

    /// Abandons pending hooks and enters the last stage; in the last stage, ends it. Has no effect if the daemon is not
    /// stopping. Call it on the loop's thread; from other threads use ``Remote/hurry()``.
    public func hurry() {
        guard case .stopping(let stage) = state else { return }
        abandonPending()
        guard stage < .exit else { return later { $0.end() } }
        abandoned += stopHooks.filter { $0.stage < .exit }.map(\.name)
        stopHooks.removeAll { $0.stage < .exit }
        state = .stopping(.exit)
        setLimit(exitLimit)
        later { $0.begin(.exit) }
    }

    /// Calls the hooks of a stage, and releases them.
    private func begin(_ stage: Stage) {
        // The stop was hurried before the stage began.
        guard state == .stopping(stage) else { return }
        let hooks = stopHooks.filter { $0.stage == stage }
        stopHooks.removeAll { $0.stage == stage }
        call(hooks)
        goOn()
    }

    /// Enters the next stage if no hook is pending.
    private func goOn() {
        guard pending.isEmpty else { return }
        switch state {
        case .reloading: endReload()
        case .stopping(.exit): end()
        case .stopping(let stage):
            assert(!stopHooks.contains { $0.stage <= stage }, "a stage ends before its hooks were called")
            let next = Stage(rawValue: stage.rawValue + 1)!
            state = .stopping(next)
            if next == .exit { setLimit(exitLimit) }
            // Lets connections accepted at the last moment read before they are asked to finish.
            guard next == .drain else { return later { $0.begin(next) } }
            loop.performAfterReading(inModes: modes) { self.begin(next) }
        case .running, .stopped: break
        }
    }

    private func end() {
        guard case .stopping(.exit) = state else { return }
        abandonPending()
        limit?.cancel()
        resending?.cancel()
        (limit, resending) = (nil, nil)
        // The last attempt to send the messages.
        if !messages.isEmpty, !sendMessages() { report(.busy) }
        messages = []
        stopHooks = []
        reloadHooks = []
        Watchdog.serviceHasStopped(manager, on: loop)
        assert(pending.isEmpty && limit == nil, "a daemon stops while something is left to do")
        state = .stopped(status)
        if let ending { ending.end() } else { loop.stop() }
    }

    private func abandonPending() {
        cancelTasks()
        abandoned += pending.sorted { $0.key < $1.key }.map(\.value)
        pending = [:]
    }

    private static let limitLabel = CallLabel("limit of stopping")
    private static let resendLabel = CallLabel("notifying the service manager")

    private func setLimit(_ duration: Duration) {
        limit?.cancel()
        let end = loop.now + duration
        limit = loop.perform(at: end, inModes: modes, label: Self.limitLabel, origin: RunLoop.Origin()) { [weak self] in
            self?.hurry()
        }
    }

    // MARK: Reloading

    /// Calls the reload hooks, and notifies the service manager before and after. A request during a reload causes
    /// another reload afterwards; a request during a stop is ignored. Call it on the loop's thread; from other threads
    /// use ``Remote/reload()``.
    public func reload() {
        switch state {
        case .running:
            state = .reloading
            tell(ServiceManager.reloading)
            later { daemon in
                guard daemon.state == .reloading else { return }
                daemon.call(daemon.reloadHooks)
                daemon.goOn()
            }
        case .reloading: reloadsAgain = true
        case .stopping, .stopped: break
        }
    }

    private func endReload() {
        assert(state == .reloading && pending.isEmpty, "a reload ends that has not begun, or before its hooks")
        state = .running
        tell(ServiceManager.ready)
        guard reloadsAgain else { return }
        reloadsAgain = false
        reload()
    }

    // MARK: Means

    /// Runs `body` in a later step of the loop, because hooks are never called from within the request that triggers
    /// them.
    func later(_ body: @escaping (Daemon) -> Void) {
        loop.perform(inModes: modes) { body(self) }
    }

    /// Sends the service manager a message, now or as soon as it accepts messages again.
    func tell(_ message: @escaping Message) {
        messages.append(message)
        if resending == nil, !sendMessages() { report(.busy) }
    }

    /// - Returns: whether all messages have been sent.
    private func sendMessages() -> Bool {
        while let message = messages.first {
            do throws(ServiceManagerError) {
                _ = try message(manager)()
                assert(!messages.isEmpty, "a message was sent twice")
                messages.removeFirst()
            } catch .busy {
                guard resending == nil else { return false }
                resending = loop.perform(
                    at: loop.now + .milliseconds(100), inModes: modes, label: Self.resendLabel, origin: RunLoop.Origin()
                ) { [weak self] in
                    guard let self else { return }
                    resending = nil
                    _ = sendMessages()
                }
                return false
            } catch {
                messages.removeFirst()
                report(error)
            }
        }
        return true
    }

    private func report(_ error: ServiceManagerError) {
        if let errorHandler { return errorHandler(self, error) }
        loop.emit(.ignored("the service manager was not notified: \(error)"))
    }

    private func call(_ hooks: [Hook]) {
        let numbered = zip(calls..., hooks)
        calls += hooks.count
        // Records all hooks before calling the first, so that a hook that finishes at once does not end the stage.
        assert(numbered.allSatisfy { pending[$0.0] == nil }, "two calls of hooks have one number")
        for (call, hook) in numbered { pending[call] = hook.name }
        for (call, hook) in numbered where pending[call] != nil { hook.body(Completion(remote, call: call)) }
    }

    func finished(_ call: Int) {
        tasks[call] = nil
        if pending.removeValue(forKey: call) != nil { goOn() }
    }
}

extension Daemon {
    /// Ends a server with the daemon, in stages: it stops accepting, its connections finish in the stage of the drain,
    /// and the rest are closed first in the last stage. See ``Server/shutDown(within:completion:)``; the deadline is
    /// ``drainLimit``.
    ///
    /// The daemon keeps the server. Call it on the loop's thread, which is that of the server, too.
    ///
    /// - Parameters:
    ///   - server: the server.
    ///   - name: the name of its hooks in ``abandoned``.
    public func add(_ server: Server, name: String = "server") {
        onStop(.stopAccepting, name: name) { done in server.stopAccepting { done() } }
        onStop(.drain, name: name) { done in server.drain { done() } }
        onStop(.exit, order: .min, name: name) { server.close() }
    }
}
