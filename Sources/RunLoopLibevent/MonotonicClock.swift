internal import Glibc
internal import RunLoopCore

/// The clock of all real loops.
enum MonotonicClock {
    static var now: RunLoop.Instant {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return RunLoop.Instant(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
    }
}
