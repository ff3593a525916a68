// error: 'scheduledDisplayLink' is unavailable from asynchronous contexts; it asks the thread for its loop; make a DisplayLink and add(to: loop
import RunLoopKit

func scheduleInAsync() async {
    DisplayLink.scheduledDisplayLink { _ in }
}
