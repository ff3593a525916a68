// The ways to make a timer: with a block, or with a target and a method of it; not yet scheduled, or scheduled at once;
// with a first fire date of its own; and on a target that it does not keep.

import RunLoopKit

final class Speaker {
    private let name: String

    init(_ name: String) {
        self.name = name
    }

    func speak(_ timer: Timer) {
        print("\(name) speaks: \(timer.userInfo ?? "nothing to say")")
    }

    deinit {
        print("\(name) goes")
    }
}

let loop = RunLoop.current

// A block, not scheduled: it fires once it has been added.
loop.add(
    Timer(timeInterval: .milliseconds(10), repeats: false) { _ in print("a block, added by hand") }, forMode: .default)

// A block, scheduled in the default mode of the current loop.
Timer.scheduledTimer(withTimeInterval: .milliseconds(20), repeats: false) { _ in print("a block, scheduled") }

// A target and a method of it, not scheduled. The timer keeps both until it is invalidated: a one-shot, after its fire.
loop.add(
    Timer(
        timeInterval: .milliseconds(30), target: Speaker("the first"), selector: Speaker.speak,
        userInfo: "added by hand",
        repeats: false), forMode: .common)

// A target and a method of it, scheduled.
Timer.scheduledTimer(
    timeInterval: .milliseconds(40), target: Speaker("the second"), selector: Speaker.speak, userInfo: "scheduled",
    repeats: false)

// A first fire date of its own, and then every 10 ms.
var fires = 0
let dated = Timer(fire: loop.now + .milliseconds(50), interval: .milliseconds(10), repeats: true) { timer in
    fires += 1
    print("from a date on, fire \(fires)")
    if fires == 2 { timer.invalidate() }
}
loop.add(dated, forMode: .default)

// A target that the timer does not keep: when it is gone, the timer invalidates itself instead of firing.
var listener: Speaker? = Speaker("the third")
let weak = Timer(timeInterval: .milliseconds(80), weakTarget: listener!, selector: Speaker.speak, repeats: true)
loop.add(weak, forMode: .default)
listener = nil

loop.run()
print("the weak timer is \(weak.isValid ? "valid" : "invalid"), and nothing is left")
