// error: 'scheduledTimer' is unavailable from asynchronous contexts; it asks the thread for its loop; write loop.add(Timer(fire: loop.now + interval, …), forMode: …)
import RunLoopKit

func scheduleInAsync() async {
    Timer.scheduledTimer(withTimeInterval: .seconds(1), repeats: true) { _ in }
}
