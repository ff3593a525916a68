// error: is unavailable from asynchronous contexts; it asks the thread for its loop; give it loop: loop
import RunLoopKit

func countInAsync(loop: RunLoop) async {
    _ = Countdown(from: 3, loop: loop, pausing: .continuing) { _ in }
    _ = Countdown(from: 3, pausing: .continuing) { _ in }
}
