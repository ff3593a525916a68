// A program that uses a run loop and a timer, whose size `CompareCosts` measures.

import RunLoopKit

Timer.scheduledTimer(withTimeInterval: .seconds(1), repeats: true) { timer in
    print(timer)
}
RunLoop.main.run()
