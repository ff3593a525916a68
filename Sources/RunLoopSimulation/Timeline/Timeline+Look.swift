internal import Glibc
internal import RunLoopCore

extension Timeline {
    /// Looks if the position has come, when the lock is not held.
    func takeLook() {
        look?.take(lookAround)
    }

    func lookAround() -> [String] { state.withLock { $0.lookAround() } }
}

extension Timeline.State {
    /// The threads that have not ended, in the order in which they were started, and what each waits for.
    mutating func lookAround() -> [String] {
        let now = clock.now
        return livingThreads.flatMap { thread -> [String] in
            let stand = Timeline.Stand(of: thread)
            let tasks = schedule?.waitingTasks(on: thread.number) ?? []
            return ["\(thread.name) \(stand.words(at: now))"] + tasks.map { "  task \($0) can go on" }
                + stand.items.map { "  \($0)\($0.isReady ? ", ready" : "")" }
        }
    }
}

extension Timeline.Stand {
    /// The words for the rest of the thread.
    fileprivate func words(at now: RunLoop.Instant) -> String {
        switch rest {
        case .none: thread.system == pthread_self() ? "runs" : "can go on"
        case .until(let date, wakeable: false): date > now ? "works until \(date)" : "can go on"
        case .until where isWoken: "was woken"
        case .until(.distantFuture, _): "waits"
        case .until(let date, _): date > now ? "waits until \(date)" : "can go on"
        case .calm: "lets the others go first"
        case .join(let other): "waits for the end of \(other.object.name)"
        case .latch(let latch): "waits for a block on \(latch.object.opener.name)"
        case .signal(of: let what): "waits for \(what)\(thread.blockedPlace)"
        case .ended: "has ended"
        }
    }
}
