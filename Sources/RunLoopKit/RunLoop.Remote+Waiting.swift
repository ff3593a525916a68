@_spi(Ports) public import RunLoopCore

extension RunLoop.Remote {
    /// Runs `block` on the loop's thread, waits until it has returned, and returns its result.
    ///
    /// On the loop's own thread the block runs at once, so that the thread does not wait for itself. From any other
    /// thread it is posted as by `perform(inModes:_:)`, and the calling thread blocks; if it has a loop, that loop does
    /// not run meanwhile. So of two loops that would wait for each other, or of several in a circle, the last one to
    /// wait gets an error that names both, and the others continue.
    ///
    /// - Parameters:
    ///   - modes: the modes in which the block may run. The default is any mode. The caller waits until the loop runs
    ///     in one of them.
    ///   - block: called once. An error that it throws is thrown here.
    /// - Throws: ``RunLoop/WaitError`` if the loop has ended, or ends before it runs the block, or if it waits for the
    ///   calling thread's loop; otherwise the block's error.
    @available(*, noasync, message: "it blocks the calling thread; await run(inModes:_:)")
    @discardableResult
    public func performAndWait<Result: Sendable>(
        inModes modes: RunLoop.Modes = .every, _ block: @escaping @Sendable (RunLoop) throws -> Result,
        file: StaticString = #fileID, line: UInt32 = #line
    ) throws -> Result {
        if let installed { return try block(installed) }
        var wait: LoopWait?
        if let caller = RunLoop.installed?.remote {
            wait = LoopWait.begin(by: caller, for: self)
            // As the recorded run decided: in a replay the other wait may begin a little later.
            if RunLoop.currentWorld.decides(wait == nil) {
                wait?.end()
                throw RunLoop.WaitError.deadlock(caller: caller.knownName, loop: knownName)
            }
        }
        defer { wait?.end() }
        let call = WaitedCall(block, latch: RunLoop.currentWorld.makeLatch(openedBy: waker), wait)
        post(PostedCall(call), inModes: modes, file: file, line: line)
        return try call.wait(for: self)
    }

    private var knownName: String? { name ?? (id == RunLoop.Remote.main.id ? "main" : nil) }

    /// Posts the call. A function of its own: while the caller waits, only the loop keeps the call.
    private func post<Result>(
        _ call: consuming PostedCall<Result>, inModes modes: RunLoop.Modes, file: StaticString, line: UInt32
    ) {
        perform(inModes: modes, { [call] in call.run(in: $0) }, file: file, line: line)
    }
}

/// A wait of a loop's thread for a block of another loop.
private final class LoopWait: Sendable {
    private let caller: RunLoop.Remote
    private let awaited: RunLoop.Remote

    private init(by caller: RunLoop.Remote, for awaited: RunLoop.Remote) {
        (self.caller, self.awaited) = (caller, awaited)
    }

    /// The waits of the process, by their callers. A thread waits for one loop at a time, so there is one chain to
    /// follow.
    private static let all = Locked<[ObjectIdentifier: LoopWait]>([:])

    /// Notes a wait; `nil` if the awaited loop waits for the caller's, itself or through others.
    static func begin(by caller: RunLoop.Remote, for awaited: RunLoop.Remote) -> LoopWait? {
        all.withLock { all in
            var last = awaited.id
            while let wait = all[last] {
                last = wait.awaited.id
                if last == caller.id { return nil }
            }
            let wait = LoopWait(by: caller, for: awaited)
            all[caller.id] = wait
            return wait
        }
    }

    /// Ends the wait. Called by the thread that ends it, before the waiting one continues: from then on that may be
    /// awaited.
    func end() {
        LoopWait.all.withLock { if $0[caller.id] === self { $0[caller.id] = nil } }
    }
}

/// A block and its result, shared by the waiting thread and the thread that runs the block.
private final class WaitedCall<Result: Sendable>: Sendable {
    private enum State {
        case posted(@Sendable (RunLoop) throws -> Result)
        case running
        case done(Swift.Result<Result, any Error>)
        case withdrawn
    }

    private let state: Locked<State>
    private let latch: any Latch
    private let place: LoopWait?

    init(_ block: @escaping @Sendable (RunLoop) throws -> Result, latch: any Latch, _ place: LoopWait?) {
        state = Locked(.posted(block))
        self.latch = latch
        self.place = place
    }

    /// Lets the waiting thread continue.
    func isOver() {
        place?.end()
        latch.open()
    }

    func run(in loop: RunLoop) {
        let block = state.withLock { state -> (@Sendable (RunLoop) throws -> Result)? in
            guard case .posted(let block) = state else { return nil }
            state = .running
            return block
        }
        guard let block else { return }
        let result = Swift.Result { try block(loop) }
        state.withLock { $0 = .done(result) }
    }

    func wait(for remote: RunLoop.Remote) throws -> Result {
        while true {
            let isOpen = latch.wait()
            let last = state.withLock { state in
                let last = state
                if case .posted = last { state = .withdrawn }
                return last
            }
            switch last {
            case .done(let result): return try result.get()
            // The block is running and waits for others, which will be notified too.
            case .running: continue
            case .posted, .withdrawn: throw isOpen ? remote.endError : RunLoop.WaitError.starved
            }
        }
    }
}

/// The loop's reference to a call. When the loop releases it, whether the block ran or not, the wait is over.
private final class PostedCall<Result: Sendable>: Sendable {
    private let call: WaitedCall<Result>

    init(_ call: WaitedCall<Result>) {
        self.call = call
    }

    deinit {
        call.isOver()
    }

    func run(in loop: RunLoop) {
        call.run(in: loop)
        call.isOver()
    }
}
