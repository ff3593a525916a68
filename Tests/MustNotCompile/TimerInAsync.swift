// error: is unavailable from asynchronous contexts; it asks the thread for its loop; write Timer(fire: loop.now + interval, interval: interval, …)
import RunLoopKit

func makeInAsync() async {
    _ = Timer(timeInterval: .seconds(1), repeats: true) { _ in }
}
