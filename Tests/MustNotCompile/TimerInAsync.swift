// error: is unavailable from asynchronous contexts; a timer belongs to a thread; make it on a LoopThread
import RunLoopKit

func makeInAsync() async {
    _ = Timer(timeInterval: .seconds(1), repeats: true) { _ in }
}
