public import RunLoopCore

extension RunLoop.Remote {
    /// Runs `block` on the loop's thread, waits until it has returned, and returns its result.
    ///
    /// On the loop's own thread the block runs at once, so that the thread does not wait for itself. From any other
    /// thread it is posted as by `perform(inModes:_:)`, and the calling thread blocks; if it has a loop, that loop does
    /// not run meanwhile. So two loops that wait for each other wait forever. On virtual time the first of them gets an
    /// error.
    ///
    /// - Parameters:
    ///   - modes: the modes in which the block may run; any mode unless given. The caller waits until the loop runs in
    ///     one of them.
    ///   - block: called once. An error that it throws is thrown here.
    /// - Throws: ``RunLoop/WaitError`` if the loop has ended, or ends before it runs the block; otherwise the
    ///   block's error.
    @available(*, noasync, message: "it blocks the calling thread; await run(inModes:_:)")
    @discardableResult
    public func performAndWait<Result: Sendable>(
        inModes modes: RunLoop.Modes = .every, _ block: @escaping @Sendable (RunLoop) throws -> Result,
        file: StaticString = #fileID, line: UInt32 = #line
    ) throws -> Result {
        if let installed { return try block(installed) }
        let call = WaitedCall(block, latch: RunLoop.currentWorld.makeLatch(openedBy: waker))
        post(PostedCall(call), inModes: modes, file: file, line: line)
        return try call.wait(for: self)
    }

    /// A function of its own: while the caller waits, only the loop keeps the call.
    private func post<Result>(
        _ call: consuming PostedCall<Result>, inModes modes: RunLoop.Modes, file: StaticString, line: UInt32
    ) {
        perform(inModes: modes, { [call] in call.run(in: $0) }, file: file, line: line)
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
    let latch: any Latch

    init(_ block: @escaping @Sendable (RunLoop) throws -> Result, latch: any Latch) {
        state = Locked(.posted(block))
        self.latch = latch
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
        call.latch.open()
    }

    func run(in loop: RunLoop) {
        call.run(in: loop)
        call.latch.open()
    }
}
