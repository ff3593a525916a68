// error: XX
import RunLoopKit

func scheduleInAsync() async {
    Timer.scheduledTimer(withTimeInterval: .seconds(1), repeats: true) { _ in }
}
