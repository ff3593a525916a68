internal import Synchronization

extension RunLoop {
    /// What other threads may ask of a loop.
    ///
    /// Everything asked here wakes the loop if it sleeps, and is carried out on the loop's thread. A block or a stop is
    /// never lost, also when it is asked for before the loop runs. Any thread, O(1).
    public struct Remote: Sendable {
        let mailbox: Mailbox<RunLoop>

        /// A remote that can be handed out before its loop exists.
        package init(waker: any Waker) {
            mailbox = Mailbox(waker: waker)
        }

        init(_ mailbox: Mailbox<RunLoop>) {
            self.mailbox = mailbox
        }

        /// Runs `block` on the loop's thread in its next pass in one of `modes`, once. Blocks from one thread run in
        /// the order in which they were posted. After 1,024 blocks, or about 5 ms, timers and sources have their turn
        /// before the rest goes on, so a flood of posts starves nobody.
        ///
        /// - Returns: `false` if the loop has ended; the block will not run.
        @discardableResult
        public func perform(
            inModes modes: consuming Modes = .common, _ block: consuming @escaping @Sendable (RunLoop) -> Void,
            file: StaticString = #fileID, line: UInt32 = #line
        ) -> Bool {
            mailbox.post(Block(modes: consume modes, body: consume block, origin: Origin(file: file, line: line)))
        }

        /// Ends the innermost run that is under way now, at the end of the pass that it is in. If the loop does not run,
        /// its next run makes one pass without sleeping and ends. Blocks posted before the stop run before the run
        /// ends.
        ///
        /// As everywhere, ``RunLoop/run()`` and ``RunLoop/run(until:)`` go on after a stop; use
        /// ``RunLoop/run(in:until:returnAfterSourceHandled:)`` for a run that is to be stopped.
        ///
        /// - Returns: `false` if the loop has ended.
        @discardableResult
        public func stop() -> Bool {
            mailbox.post(.stop(activation: mailbox.activation.load(ordering: .acquiring)))
        }

        /// Ends the loop's sleep, or the one that it is about to begin: it makes one more pass. A loop that does not run
        /// has no sleep to end, and its next run is not changed.
        ///
        /// - Returns: `false` if the loop has ended.
        @discardableResult
        public func wakeUp() -> Bool {
            mailbox.post(.wakeUp)
        }

        /// The time on the loop's clock.
        public var now: Instant { mailbox.waker.now }

        /// Whether the loop sleeps at this moment.
        public var isWaiting: Bool { mailbox.isAsleep }
    }

    /// What other threads may ask of this loop. May be copied to any thread.
    public var remote: Remote { Remote(mailbox) }

    /// A loop of the calling thread.
    ///
    /// - Parameter remote: one that was handed out before the loop was made; its own unless given.
    package convenience init(
        driver: any Driver, world: any World, remote: Remote? = nil, name: String? = nil
    ) {
        self.init(driver: driver, world: world, mailbox: remote?.mailbox ?? Mailbox(waker: driver.waker), name: name)
    }
}
