// error: 'scheduledTimer' is unavailable from asynchronous contexts; a timer belongs to a thread
import RunLoopKit

func scheduleInAsync() async {
    Timer.scheduledTimer(withTimeInterval: .seconds(1), repeats: true) { _ in }
}
