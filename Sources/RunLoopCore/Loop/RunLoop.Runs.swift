extension RunLoop {
    /// The runs of a loop that are under way, the job in the innermost one, and requests to end runs.
    struct Runs {
        var innermost: Activation?
        /// The runs in which the innermost one is nested, the outermost first.
        var outer: [Activation] = []
        var lastNumber: UInt64 = 0
        /// Set if another thread's stop found no run to end: the next run will end.
        var isStopPending = false
        /// Set if the loop's thread is to end: every run ends, and a new run makes a single pass.
        var isEnding = false
        /// Set if the next sleep is to end at once.
        var isWakeUpPending = false
        /// The item whose job is running: a `JobQueue`, which no other code sets.
        var jobItem: UnownedReference<UntimedItem>?
        /// The mode of the host's wait, and the run in whose handler it is; `nil` without a guest.
        var hostWait: (mode: Mode, run: UInt64?)?

        /// Ends every run, and lets later ones make a single pass.
        mutating func endAll() {
            isEnding = true
            innermost?.isStopped = true
            for index in outer.indices { outer[index].isStopped = true }
        }

        /// Ends the run that was the innermost one when another thread asked, or else the present innermost one, or the
        /// next one.
        mutating func stop(_ number: UInt64) {
            if let index = outer.lastIndex(where: { $0.number == number }) {
                assert(innermost != nil, "runs are nested in none")
                outer[index].isStopped = true
            } else if innermost != nil {
                innermost!.isStopped = true
            } else {
                isStopPending = true
            }
        }
    }

    /// A run that is under way.
    struct Activation {
        let mode: Mode
        let limit: Instant
        let isPoll: Bool
        let returnsAfterSource: Bool
        let number: UInt64
        var isStopped = false
    }
}
