internal import CShims
package import RunLoopCore

/// The waits of simulated threads for a signal at an address: those of conditions, semaphores and locks of the C library,
/// and of futexes.
package enum AddressWaits {
    private struct Wait {
        let thread: ObjectIdentifier
        let address: UInt
        /// A signal for other bits does not count.
        let bits: UInt32
        /// Ends the wait before its limit.
        let end: @Sendable () -> Void
    }

    /// Notes the place in the program where the calling thread is, for reports; the result describes it, if it can.
    package static let capturesPlaces = Locked<(@Sendable () -> @Sendable () -> String?)?>(nil)

    /// In the order in which they began.
    private static let all = Locked<[Wait]>([])

    /// Calls `body` with the waits. Swift's runtime may use locks of its own for it, and these signal nobody.
    private static func withAll<Result>(_ body: (inout [Wait]) -> Result) -> Result {
        let answers = rlk_set_simulated(nil)
        defer { rlk_set_simulated(answers) }
        return all.withLock(body)
    }

    /// - Parameter end: called on any thread if the address is signalled, without a lock.
    static func begin(
        of thread: AnyObject, at address: UInt, bits: UInt32, end: @escaping @Sendable () -> Void
    ) {
        let wait = Wait(thread: ObjectIdentifier(thread), address: address, bits: bits, end: end)
        withAll { $0.append(wait) }
        rlk_count_simulated_wait(1)
    }

    static func isWaiting(_ thread: AnyObject) -> Bool {
        withAll { $0.contains { $0.thread == ObjectIdentifier(thread) } }
    }

    /// Ends the wait of a thread, if it has one.
    ///
    /// - Returns: whether it had one, and was not signalled.
    @discardableResult
    static func end(of thread: AnyObject) -> Bool {
        let wasWaiting = withAll { waits in
            let index = waits.firstIndex { $0.thread == ObjectIdentifier(thread) }
            if let index { waits.remove(at: index) }
            return index != nil
        }
        if wasWaiting { rlk_count_simulated_wait(-1) }
        return wasWaiting
    }

    /// Ends the first waits at an address for one of the bits. Any thread.
    ///
    /// - Returns: how many.
    static func signal(_ address: UInt, bits: UInt32, most: Int) -> Int {
        let signalled = withAll { waits in
            let signalled = waits.filter { $0.address == address && $0.bits & bits != 0 }.prefix(most)
            waits.removeAll { wait in signalled.contains { $0.thread == wait.thread } }
            return signalled
        }
        for wait in signalled {
            rlk_count_simulated_wait(-1)
            wait.end()
        }
        return signalled.count
    }
}
