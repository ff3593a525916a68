// error: is unavailable from asynchronous contexts; a timer belongs to a thread; sleep on a clock, or make it in a block for remote.run
import RunLoopKit

func makeInAsync() async {
    _ = Timer(timeInterval: .seconds(1), repeats: true) { _ in }
}
