internal import CShims
package import RunLoopCore

/// The waits of simulated threads for a signal at an address: those of conditions and semaphores of the C
/// library.
package enum AddressWaits {
    private struct Wait {
        let thread: ObjectIdentifier
        let address: UInt
        /// Ends the wait before its limit.
        let end: @Sendable () -> Void
    }

    /// Notes the place in the program where the calling thread is, for reports; the result describes it, if it can.
    package static let capturesPlaces = Locked<(@Sendable () -> @Sendable () -> String?)?>(nil)

    /// In the order in which they began.
    private static let all = Locked<[Wait]>([])

    /// - Parameter end: called on any thread if the address is signalled, without a lock.
    static func begin(of thread: AnyObject, at address: UInt, end: @escaping @Sendable () -> Void) {
        all.withLock { $0.append(Wait(thread: ObjectIdentifier(thread), address: address, end: end)) }
        rlk_count_simulated_wait(1)
    }

    static func isWaiting(_ thread: AnyObject) -> Bool {
        all.withLock { $0.contains { $0.thread == ObjectIdentifier(thread) } }
    }

    /// Ends the wait of a thread, if it has one.
    ///
    /// - Returns: whether it had one, and was not signalled.
    @discardableResult
    static func end(of thread: AnyObject) -> Bool {
        let wasWaiting = all.withLock { waits in
            let index = waits.firstIndex { $0.thread == ObjectIdentifier(thread) }
            if let index { waits.remove(at: index) }
            return index != nil
        }
        if wasWaiting { rlk_count_simulated_wait(-1) }
        return wasWaiting
    }

    /// Ends the first wait at an address, or all of them. Any thread.
    static func signal(_ address: UInt, all isForAll: Bool) {
        let signalled = all.withLock { waits in
            let found = waits.filter { $0.address == address }
            let signalled = isForAll ? found : Array(found.prefix(1))
            waits.removeAll { wait in signalled.contains { $0.thread == wait.thread } }
            return signalled
        }
        for wait in signalled {
            rlk_count_simulated_wait(-1)
            wait.end()
        }
    }
}
