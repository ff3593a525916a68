import DragReport
import RunLoopKit
import RunLoopSimulation
import Testing

/// Returns a report of the window's timers and links, with a drag from 1 s to 4.2 s, on virtual time.
private func report(_ change: (inout DragReport) -> Void = { _ in }) -> DragReport {
    withSimulation { simulation in
        let loop = simulation.loop
        loop.addCommonMode("tracking")
        var report = DragReport(interval: .milliseconds(100))
        let frames = FrameSource()
        loop.add(
            Timer(timeInterval: .milliseconds(100), repeats: true) { report.usual.append(.init(of: $0, at: loop.now)) },
            forMode: .default)
        loop.add(
            Timer(timeInterval: .milliseconds(100), repeats: true) {
                report.common.append(.init(of: $0, at: loop.now))
            }, forMode: .common)
        let link = DisplayLink(frames: frames) { _ in report.usualCalls.append(loop.now) }
        link.preferredFramesPerSecond = 30
        link.add(to: loop, forMode: .default)
        DisplayLink(frames: frames) { _ in report.commonCalls.append(loop.now) }.add(to: loop, forMode: .common)
        let display = Timer(timeInterval: .nanoseconds(16_666_667), repeats: true) { _ in
            report.frames.append(loop.now)
            frames.frameBegan(at: loop.now)
        }
        loop.add(display, forMode: .common)
        loop.run(in: .default, until: loop.now + .milliseconds(1005))
        let begin = loop.now
        loop.run(in: "tracking", until: loop.now + .milliseconds(3215))
        report.drags.append(.init(begin: begin, end: loop.now))
        loop.run(in: .default, until: loop.now + .seconds(1))
        change(&report)
        return report
    }
}

@Suite("The rules for a drag")
struct DragReportTests {
    @Test("a default timer fires once late after the drag and returns to its grid; common items continue")
    func rules() {
        let report = report()
        #expect(report.faults == [])
        #expect(report.usual.count == 21 && report.common.count == 52)
        #expect(report.usual.first { $0.missed > 0 }?.missed == 31)
        #expect(
            report.description.contains(
                "a drag of 3215 ms               0            32             0          193      193"), "\(report)")
        #expect(
            report.description.contains("then the default timer fired once, 3120 ms late, and had missed 31 dates"),
            "\(report)")
    }

    @Test("a call that breaks a rule is a fault")
    func faults() {
        func expect(_ words: String, _ change: (inout DragReport) -> Void) {
            let faults = report(change).faults
            #expect(faults.contains { $0.contains(words) }, "\(words): \(faults)")
        }
        func fire(_ fire: DragReport.Fire, _ later: Duration = .zero, due: Duration = .zero) -> DragReport.Fire {
            .init(date: fire.date + later, due: fire.due + due, missed: fire.missed)
        }
        expect("left its grid") { $0.usual[3] = fire($0.usual[3], due: .milliseconds(1)) }
        expect("in a drag") { $0.usual[10] = fire($0.usual[10], .milliseconds(-100)) }
        expect("fired before") { $0.common[3] = fire($0.common[3], .milliseconds(-1)) }
        expect("are left out") { $0.common.remove(at: 3) }
        expect("no drag was made") { $0.drags = [] }
        expect("the common link was called") { $0.commonCalls.removeLast() }
        expect("the common timer fired") { $0.common.removeSubrange(20..<40) }
        expect("the default link was called") { $0.usualCalls.removeSubrange(0..<20) }
        expect("the default link was called at") { $0.usualCalls.append($0.drags[0].begin + .seconds(1)) }
        expect("only 0 dates were missed") { report in
            report.drags[0] = .init(begin: report.drags[0].begin, end: report.drags[0].end + .milliseconds(500))
        }
    }
}
