import RunLoopKit

@testable import Cron

/// The record of a daemon and its commands.
struct Diary {
    /// A command that has begun.
    struct Run {
        let name: String
        /// The date that the command received.
        let date: RunLoop.WallTime
        let start: RunLoop.Instant
        /// The time when the command intended to end.
        let planned: RunLoop.Instant
        let isStubborn: Bool
        /// The times when the command was asked to end, and when it ended by itself; `nil` if that has not happened.
        var asked: RunLoop.Instant?
        var end: RunLoop.Instant?
    }

    var runs: [Run] = []
    /// The tables that the daemon should have had, with the times from which it should.
    var tables: [(from: RunLoop.Instant, table: JobTable)] = []
    /// A period in which the daemon ran, and was not asked to stop.
    struct Life {
        let time: ClosedRange<RunLoop.Instant>
        /// `true` if the daemon was asked to stop, so that running commands may continue for a while.
        let hasStopped: Bool
    }

    private(set) var lives: [Life] = []
    /// The periods in which the disk was full.
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

    /// Returns the first instant when the clock showed this time, or a later one.
    func instant(of time: RunLoop.WallTime) -> RunLoop.Instant {
        for (index, segment) in clock.enumerated() {
            let instant = max(segment.at, segment.at + (time - segment.time))
            if index == clock.count - 1 || instant < clock[index + 1].at { return instant }
        }
        return .distantFuture
    }

    /// Returns the time that the clock showed.
    func time(at instant: RunLoop.Instant) -> RunLoop.WallTime {
        let segment = clock.last { $0.at <= instant }!
        return segment.time + (instant - segment.at)
    }
}
