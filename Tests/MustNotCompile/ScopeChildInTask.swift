// error: passing closure as a 'sending' parameter risks causing data races
import RunLoopKit

func waitElsewhere(child: RunLoop.Tasks.Child<Int>) {
    Task { try await child.value }
}
