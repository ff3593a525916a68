internal import Synchronization

extension RunLoop {
    /// A handle by which other threads send requests to a loop.
    ///
    /// Each request wakes the loop if it sleeps, and the loop carries it out on its own thread. Blocks and stops are
    /// never lost, even if they come before the loop runs. `Sendable`; any thread, O(1).
    public struct Remote: Sendable {
        let mailbox: Mailbox<RunLoop>

        /// Creates a remote that can be handed out before its loop exists.
        package init(waker: any Waker, name: String? = nil) {
            mailbox = Mailbox(waker: waker, name: name)
        }

        /// Indicates whether the order of mail is recorded or repeated. Then senders may not share a post, which would
        /// depend on the first of them and could not be repeated.
        @_spi(Ports) public var keepsOrder: Bool { mailbox.keepsOrder }

        package var id: ObjectIdentifier { ObjectIdentifier(mailbox) }

        /// The name of the loop's thread, if it is a ``LoopThread``.
        package var name: String? { mailbox.name }

        package var waker: any Waker { mailbox.waker }

        init(_ mailbox: Mailbox<RunLoop>) {
            self.mailbox = mailbox
        }

        /// Runs `block` once, on the loop's thread, in its next pass in one of `modes`. Blocks from one thread run in
        /// the order in which they were posted. After 1,024 blocks, or about 5 ms, timers and sources have their turn
        /// before the remaining blocks run, so a flood of posts starves no item.
        ///
        /// - Returns: `false` if the loop has ended and the block will not run.
        @discardableResult
        public func perform(
            inModes modes: consuming Modes = .common, _ block: consuming @escaping @Sendable (RunLoop) -> Void,
            file: StaticString = #fileID, line: UInt32 = #line
        ) -> Bool {
            let origin = Origin(file: file, line: line)
            if mailbox.notesPosters { return watchedPost(modes, block, origin) }
            return mailbox.post(Block(modes: consume modes, body: consume block, origin: origin))
        }

        /// Ends the innermost run at the end of its pass. If the loop is not running, its next run makes one pass
        /// without sleeping and ends. Blocks posted before the stop run before the run ends.
        ///
        /// A stop does not end ``RunLoop/run()`` and ``RunLoop/run(until:)``, which start another run. To run a loop
        /// that can be stopped, use ``RunLoop/run(in:until:returnAfterSourceHandled:)``.
        ///
        /// - Returns: `false` if the loop has ended.
        @discardableResult
        public func stop() -> Bool {
            mailbox.post(.stop(activation: mailbox.activation.load(ordering: .acquiring)))
        }

        /// Ends the loop's sleep, or the sleep that it is about to begin, so that it makes one more pass. A request to
        /// a loop that is not running is dropped, as by `CFRunLoopWakeUp`.
        ///
        /// - Returns: `false` if the loop has ended.
        @discardableResult
        public func wakeUp() -> Bool {
            mailbox.post(.wakeUp)
        }

        /// The time on the loop's clock.
        public var now: Instant { mailbox.waker.now }

        /// A Boolean value that indicates whether the loop is asleep now.
        public var isWaiting: Bool { mailbox.isAsleep }
    }

    /// A handle by which other threads send requests to this loop. Any thread may use it.
    public var remote: Remote { Remote(mailbox) }

    /// Creates a loop of the calling thread. `install(_:)` then makes it `RunLoop.current`; on the main thread, set it in
    /// `mainRemotes` too, so that other threads find it.
    ///
    /// - Parameter remote: a remote handed out before the loop was made; `nil` for a new one.
    @_spi(Ports) public convenience init(driver: any Driver, world: any World, remote: Remote? = nil) {
        self.init(driver: driver, world: world, mailbox: remote?.mailbox ?? Mailbox(waker: driver.waker))
    }
}
