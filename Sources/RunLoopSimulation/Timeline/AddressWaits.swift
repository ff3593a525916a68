internal import CShims
@_spi(Ports) public import RunLoopCore

/// The waits of simulated threads for a signal at an address, made by conditions, semaphores and locks of the C
/// library, and by futexes.
@_spi(Ports) public enum AddressWaits {
    private struct Wait {
        let thread: ObjectIdentifier
        let address: UInt
        /// The bits of the wait; a signal for other bits does not count.
        let bits: UInt32
        /// Ends the wait before its limit.
        let end: @Sendable () -> Void
    }

    /// Notes the place in the program where the calling thread is, for reports. The returned closure describes the
    /// place, if it can.
    public static let capturesPlaces = Locked<(@Sendable () -> @Sendable () -> String?)?>(nil)

    /// The waits, in the order in which they began.
    private static let all = Locked<[Wait]>([])

    /// Calls `body` with the waits. The locks that Swift's runtime may use meanwhile signal no simulated thread.
    private static func withAll<Result>(_ body: (inout [Wait]) -> Result) -> Result {
        let answers = rlk_set_simulated(nil)
        defer { rlk_set_simulated(answers) }
        return all.withLock(body)
    }

    /// - Parameter end: called without a lock, on any thread, if the address is signalled.
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

    /// Ends the wait of a thread, if there is one.
    ///
    /// - Returns: `true` if the thread had a wait that was not signalled.
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
    /// - Returns: the number of waits ended.
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
