// error: XX
import RunLoopKit

func makeElsewhere() -> Timer? {
    var timer: Timer?
    let thread = LoopThread { _ in
        timer = Timer.scheduledTimer(withTimeInterval: .seconds(1), repeats: true) { _ in }
    }
    thread.join()
    return timer
}
