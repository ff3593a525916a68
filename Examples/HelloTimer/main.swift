// A timer that says hello three times, and then nothing is left to wait for.

import RunLoopKit

var greetings = 0
Timer.scheduledTimer(withTimeInterval: .milliseconds(200), repeats: true) { timer in
    greetings += 1
    print("hello, no. \(greetings)")
    if greetings == 3 { timer.invalidate() }
}
RunLoop.current.run()
