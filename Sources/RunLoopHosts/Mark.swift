internal import RunLoopSimulation

/// The marks of simulated hosts: moments that go wrong in the world, and that a program should survive. See the page
/// *Test a daemon*.
enum Mark: String, CaseIterable {
    // The network.
    case packetSentAgain = "a packet was sent again"
    case connectionRefused = "a connection was refused"
    case connectionReset = "a connection was reset"
    case connectionTimedOut = "a connection timed out"
    case connectionHalfOpen = "a connection was half open"
    case backlogFull = "a backlog was full"
    case writePartial = "a write was partial"
    case socketFull = "a socket was full"
    case datagramLost = "a datagram was lost"
    case datagramDoubled = "a datagram came twice"
    case datagramHeld = "a datagram was held back"
    case linkCut = "a link was cut"

    // The disk.
    case writeTorn = "a write was torn"
    case changeLost = "an unsynced change was lost"
    case nameLost = "an unsynced name was lost"
    case diskFull = "a disk was full"
    case diskFailed = "a disk failed"
    case fileEventsLost = "file events were lost"

    // The machine.
    case hostCrashed = "a host crashed"
    case hostStartedAgain = "a host started again"
    case processKilled = "a process was killed"
    case watchdogStarved = "a watchdog was starved"
}

extension Simulation {
    /// Counts a mark. O(1).
    func meet(_ mark: Mark) {
        sometimes(mark.rawValue)
    }
}
