// The frame rate as a coloured figure, while the loop is kept busy.
//
// A display link of 60 frames per second feeds a meter; a timer blocks the loop for a while in every frame. In a
// terminal `+` and `-`, or the arrow keys, make the block longer and shorter, and `q` quits. Without a terminal a short
// demonstration runs by itself.

import Glibc
import RunLoopKit

let loop = RunLoop.current
let terminal = Terminal()
let gauge = Gauge(terminal: terminal)

// The link, and the timer that keeps the loop busy, both in the common modes.
let link = DisplayLink.scheduledDisplayLink(
    clock: FrameClock(start: loop.now), target: gauge, selector: Gauge.noteFrame)
let work = Timer(timeInterval: link.duration, repeats: true) { _ in usleep(UInt32(gauge.load) * 1000) }
loop.add(work, forMode: .common)

if let terminal {
    let keys = DescriptorSource(fileDescriptor: STDIN_FILENO, events: .readable) { source, _ in
        for key in terminal.readKeys() {
            switch key {
            case .more: gauge.load = min(gauge.load + 2, 100)
            case .less: gauge.load = max(gauge.load - 2, 0)
            case .end:
                link.invalidate()
                work.invalidate()
                source.invalidate()
            }
        }
        gauge.show(link)
    }
    try loop.add(keys, forMode: .common)
    gauge.show(link)
} else {
    loop.perform(afterDelay: .milliseconds(1_100)) { gauge.load = 50 }
    loop.perform(afterDelay: .milliseconds(3_300)) {
        link.invalidate()
        work.invalidate()
    }
}

// Returns when nothing is left to wait for.
loop.run()
terminal?.restore()
