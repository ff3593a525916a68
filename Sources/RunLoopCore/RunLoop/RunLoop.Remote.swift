internal import Synchronization

extension RunLoop {
    /// What other threads may ask of a loop.
    ///
    /// Everything asked here wakes the loop if it sleeps, is never lost, and is carried out on the loop's thread; also
    /// what is asked before the loop runs. Any thread, O(1).
    public struct Remote: Sendable {
        let mailbox: Mailbox

        /// A remote that can be handed out before its loop exists.
        package init(waker: any Waker) {
            mailbox = Mailbox(waker: waker)
        }

        /// Runs `block` on the loop's thread in its next pass in one of `modes`, once. Blocks from one thread run in
        /// the order in which they were posted (R75).
        ///
        /// - Returns: `false` if the loop has ended; the block will not run.
        @discardableResult
        public func perform(
            inModes modes: consuming Modes = .common, _ block: consuming @escaping @Sendable (RunLoop) -> Void,
            file: StaticString = #fileID, line: UInt32 = #line
        ) -> Bool {
            mailbox.post(Block(modes: consume modes, body: consume block, origin: Origin(file: file, line: line)))
        }

        /// Ends the innermost run that is under way now, after the step it is in (R82–R84). If the loop does not run,
        /// its next run makes one pass without sleeping and ends. Blocks posted before the stop run before the run
        /// ends.
        ///
        /// As everywhere, ``RunLoop/run()`` and ``RunLoop/run(until:)`` go on after a stop (R46); use
        /// ``RunLoop/run(in:until:returnAfterSourceHandled:)`` for a run that is to be stopped.
        ///
        /// - Returns: `false` if the loop has ended.
        @discardableResult
        public func stop() -> Bool {
            mailbox.post(.stop(activation: mailbox.activation.load(ordering: .acquiring)))
        }

        /// Ends the loop's sleep: it makes one more pass (R85).
        ///
        /// - Returns: `false` if the loop has ended.
        @discardableResult
        public func wakeUp() -> Bool {
            mailbox.post(.wakeUp)
        }

        /// The time on the loop's clock.
        public var now: Instant { mailbox.waker.now }

        /// Whether the loop sleeps at this moment (R5).
        public var isWaiting: Bool { mailbox.isAsleep }

        /// Runs `block` wherever the loop next looks, in any mode.
        @discardableResult
        package func performUrgently(_ block: @escaping @Sendable (RunLoop) -> Void) -> Bool {
            mailbox.post(.urgent(block))
        }
    }
}
