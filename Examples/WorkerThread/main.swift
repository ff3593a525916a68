// A thread with a loop of its own. The thread ends by itself when nothing is left in its loop, or on request, and the
// objects that it kept are released before `join` returns.

import RunLoopKit

final class Sampler {
    private var samples = 0

    func sample(_ timer: Timer) {
        samples += 1
        print("sample \(samples)")
        if samples == 3 { timer.invalidate() }
    }

    deinit {
        print("the sampler is released")
    }
}

// One call: a thread, its loop, a timer on it. The timer keeps its target until it is invalidated; then nothing is
// left, the loop ends, and the thread with it.
let thread = LoopThread(name: "sampler") { _ in
    Timer.scheduledTimer(
        timeInterval: .milliseconds(100), target: Sampler(), selector: Sampler.sample, repeats: true)
}
thread.join()
print("the first thread has ended")

// A thread that lives as long as the scope, for work that is posted to it.
withLoopThread(name: "worker") { worker in
    for job in 1...3 {
        worker.remote.perform { _ in print("job \(job)") }
    }
    worker.remote.perform { loop in
        loop.perform(afterDelay: .milliseconds(100)) { print("a delayed call on the worker") }
    }
    RunLoop.current.perform(afterDelay: .milliseconds(300)) { print("meanwhile on the main thread") }
    RunLoop.current.run()
}
print("the second thread has ended")
