// A program that uses a run loop and a timer, for `CompareCosts` to look at its size.

import RunLoopKit

Timer.scheduledTimer(withTimeInterval: .seconds(1), repeats: true) { timer in
    print(timer)
}
RunLoop.main.run()
