import Glibc
import Testing

/// Waits until a condition holds; after a time that no test needs, gives up with an issue.
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
