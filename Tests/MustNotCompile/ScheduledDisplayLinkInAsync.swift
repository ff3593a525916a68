// error: 'scheduledDisplayLink' is unavailable from asynchronous contexts; a display link belongs to a thread
import RunLoopKit

func scheduleInAsync() async {
    DisplayLink.scheduledDisplayLink { _ in }
}
