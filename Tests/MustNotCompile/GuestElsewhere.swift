// error: passing closure as a 'sending' parameter risks causing data races
import RunLoopKit

func prepareElsewhere(guest: RunLoop.Guest) {
    Task.detached { _ = guest.prepare() }
}
