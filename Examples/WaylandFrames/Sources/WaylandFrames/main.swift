// A window of a Wayland compositor without a toolkit. The compositor's frame callbacks are the frames of two display
// links, and each link moves a bar. From the 61st frame to the 120th the loop runs in the tracking mode, as it does
// while a user drags, and the bar of the default mode stops. After 180 frames the program prints the number of calls of
// each link, and ends with status 1 if a rule was broken.

import Glibc
import RunLoopKit

func main(_ loop: RunLoop) throws -> Report {
    var report = Report()
    loop.addCommonMode(.tracking)
    let display = try Display(on: loop)
    let window = Window(on: display, loop)

    let usual = DisplayLink(frames: window.frames) { link in
        report.usualCalls.append(.init(date: link.timestamp, mode: loop.currentMode))
        window.places[0] += 2
    }
    let common = DisplayLink(frames: window.frames) { link in
        report.commonCalls.append(.init(date: link.timestamp, mode: loop.currentMode))
        window.places[1] += 2
    }
    usual.add(to: loop, forMode: .default)
    common.add(to: loop, forMode: .common)

    window.frameHandler = { date in
        report.frames.append(.init(date: date, mode: loop.currentMode))
        switch report.frames.count {
        case 60: loop.run(in: .tracking)
        case 120, 180: loop.stop()
        default: break
        }
    }
    loop.run(in: .default)
    print("the time between frames: \(window.frames.interval)")
    return report
}

let report = try main(.current)
print(report)
for fault in report.faults { print("BROKEN: \(fault)") }
exit(report.faults.isEmpty ? 0 : 1)
