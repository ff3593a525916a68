import Glibc
import Testing

/// Waits until something is so, and gives up with an issue after a time that no test needs.
@discardableResult
func eventually(
    _ what: Comment? = nil, sourceLocation: SourceLocation = #_sourceLocation, _ isSo: () -> Bool
) -> Bool {
    let clock = ContinuousClock()
    let end = clock.now + .seconds(60)
    while !isSo() {
        guard clock.now < end else {
            Issue.record(what, sourceLocation: sourceLocation)
            return false
        }
        usleep(2_000)
    }
    return true
}
