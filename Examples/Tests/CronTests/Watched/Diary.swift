import RunLoopKit

@testable import Cron

/// What has happened to a daemon and its commands.
struct Diary {
    /// A command that has begun.
    struct Run {
        let name: String
        /// The date that it was told.
        let date: RunLoop.WallTime
        let start: RunLoop.Instant
        /// When it wanted to end.
        let planned: RunLoop.Instant
        let isStubborn: Bool
        /// When it was asked to end, and when it ended by itself; `nil` if that has not happened.
        var asked: RunLoop.Instant?
        var end: RunLoop.Instant?
    }

    var runs: [Run] = []
    /// From when on the daemon was to have which table.
    var tables: [(from: RunLoop.Instant, table: JobTable)] = []
    /// A time in which the daemon was there, and was not asked to stop.
    struct Life {
        let time: ClosedRange<RunLoop.Instant>
        /// Whether it was asked to stop, so that what runs may go on for a while.
        let hasStopped: Bool
    }

    private(set) var lives: [Life] = []
    /// When the disk was full.
    var fullDisks: [ClosedRange<RunLoop.Instant>] = []
    private var clock: [(at: RunLoop.Instant, time: RunLoop.WallTime)] = []

    mutating func daemonBegan(at instant: RunLoop.Instant) {
        lives.append(Life(time: instant...(.distantFuture), hasStopped: false))
    }

    mutating func daemonEnded(at instant: RunLoop.Instant, hasStopped: Bool) {
        let life = lives.removeLast()
        lives.append(Life(time: life.time.lowerBound...instant, hasStopped: hasStopped))
    }

    mutating func clockShows(_ time: RunLoop.WallTime, at instant: RunLoop.Instant) {
        clock.append((instant, time))
    }

    /// When the clock first showed a time, or a later one.
    func instant(of time: RunLoop.WallTime) -> RunLoop.Instant {
        for (index, segment) in clock.enumerated() {
            let instant = max(segment.at, segment.at + (time - segment.time))
            if index == clock.count - 1 || instant < clock[index + 1].at { return instant }
        }
        return .distantFuture
    }

    /// What the clock showed.
    func time(at instant: RunLoop.Instant) -> RunLoop.WallTime {
        let segment = clock.last { $0.at <= instant }!
        return segment.time + (instant - segment.at)
    }
}
