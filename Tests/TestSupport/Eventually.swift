import Glibc
package import Testing

/// Waits until a condition holds; after a time that no test needs, gives up with an issue.
package func eventually(
    _ what: Comment? = nil, sourceLocation: SourceLocation = #_sourceLocation, _ isSo: () -> Bool
) -> Bool {
    let clock = ContinuousClock()
    let end = clock.now + .seconds(120)
    var turns = 0
    while !isSo() {
        guard clock.now < end else {
            Issue.record(what, sourceLocation: sourceLocation)
            return false
        }
        turns += 1
        if turns % 1000 == 0 { usleep(100) } else { sched_yield() }
    }
    return true
}

/// Waits as ``eventually(_:sourceLocation:_:)`` does, without keeping a thread.
package func comesTrue(
    _ what: Comment? = nil, sourceLocation: SourceLocation = #_sourceLocation, _ isSo: () -> Bool
) async throws {
    let clock = ContinuousClock()
    let end = clock.now + .seconds(120)
    while !isSo() {
        guard clock.now < end else {
            Issue.record(what, sourceLocation: sourceLocation)
            return
        }
        try await Task.sleep(for: .milliseconds(1))
    }
}
