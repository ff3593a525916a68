import RunLoopKit
import TestSupport

/// The documented rules of scopes, over a loop that has only jobs and dates.
///
/// A job is a closure, and a node receives the closure that continues after it.
final class ScopeModel {
    typealias Continuation = (_ error: String?) -> Void

    private(set) var ends: [ScopeEnd] = []
    private var now = seconds(0)

    // MARK: The loop

    private struct Date {
        let date: RunLoop.Instant
        let order: Int
        let action: () -> Void
    }

    private var dates: [Date] = []
    private var jobs: [() -> Void] = []
    private var lastOrder = 0

    private func call(at date: RunLoop.Instant, _ action: @escaping () -> Void) -> Int {
        lastOrder += 1
        dates.append(Date(date: date, order: lastOrder, action: action))
        return lastOrder
    }

    private func forget(_ order: Int) { dates.removeAll { $0.order == order } }

    /// Makes the due calls by date, and in the order in which they were armed. Jobs have a turn before and after them.
    private func run() {
        while true {
            takeTurn()
            guard !jobs.isEmpty || !dates.isEmpty else { return }
            if jobs.isEmpty { now = max(now, dates.map(\.date).min()!) }
            while let next = dates.filter({ $0.date <= now }).min(by: { ($0.date, $0.order) < ($1.date, $1.order) }) {
                forget(next.order)
                next.action()
            }
            takeTurn()
        }
    }

    /// Runs jobs in order. The clock is read after 1, 2, 4, 8 … of them, and ends the turn 5 ms after the first
    /// reading.
    private func takeTurn() {
        var (count, nextLook) = (0, 1)
        var end: RunLoop.Instant?
        while !jobs.isEmpty {
            jobs.removeFirst()()
            count += 1
            guard count == nextLook else { continue }
            nextLook *= 2
            if end == nil { end = now + .milliseconds(5) }
            if now >= end! { return }
        }
    }

    // MARK: Tasks and scopes

    private final class Job {
        /// The scope of which the job is a member.
        let scope: Scope?
        var isCancelled = false
        /// `true` if the job was cancelled alone.
        var isCancelledAlone = false
        /// Ends the present wait; `nil` if there is none, or if the wait ignores cancellation.
        var interrupt: (() -> Void)?
        /// The end of the job, with its error.
        var end: (error: String?, Void)?
        var waiters: [Waiter] = []

        init(in scope: Scope?) {
            self.scope = scope
        }

        func cancel() {
            guard !isCancelled else { return }
            isCancelled = true
            let interrupt = interrupt
            self.interrupt = nil
            interrupt?()
        }
    }

    /// A task that waits for the value of another.
    private final class Waiter {
        let resume: () -> Void

        init(_ resume: @escaping () -> Void) {
            self.resume = resume
        }
    }

    private enum Cause {
        case program, deadline, failure, caller
    }

    private final class Scope {
        let outer: Scope?
        let isShield: Bool
        var deadline: RunLoop.Instant
        var alarm = 0
        /// The members that have not ended, the body first.
        var members: [Job] = []
        var cause: Cause?
        /// The first error not caused by cancellation.
        var failure: String?
        var isCut = false
        var whenAllHaveEnded: () -> Void = {}
        // For a scope with tasks:
        var children: [Job] = []

        init(_ deadline: RunLoop.Instant, in outer: Scope?, isShield: Bool) {
            (self.deadline, self.outer, self.isShield) = (deadline, outer, isShield)
        }

        func cancel(because cause: Cause) {
            guard self.cause == nil else { return }
            self.cause = cause
            for member in members { member.cancel() }
        }

        /// Cancels the outermost scope whose deadline has passed; a shield is the outermost.
        func lookAtDeadlines(_ now: RunLoop.Instant) {
            if !isShield { outer?.lookAtDeadlines(now) }
            if deadline <= now { cancel(because: .deadline) }
        }
    }

    /// Begins a wait of a task, which looks at the deadlines first.
    ///
    /// - Parameter begin: begins the wait, and returns the closure that gives it up.
    private func wait(_ job: Job, then: @escaping Continuation, _ begin: () -> () -> Void) {
        job.scope?.lookAtDeadlines(now)
        guard !job.isCancelled else { return jobs.append { then("cancelled") } }
        let giveUp = begin()
        job.interrupt = { [self] in
            giveUp()
            jobs.append { then("cancelled") }
        }
    }

    private func start(_ node: ScopeNode, in scope: Scope, _ place: Place?) -> Job {
        let job = Job(in: scope)
        scope.members.append(job)
        if scope.cause != nil { job.isCancelled = true }
        jobs.append { [self] in perform(node, in: job, place) { self.ended(job, in: scope, $0) } }
        return job
    }

    private func ended(_ job: Job, in scope: Scope, _ error: String?) {
        job.end = (error, ())
        scope.lookAtDeadlines(now)
        scope.members.removeAll { $0 === job }
        var isFirstFailure = false
        if let error, error == "cancelled", scope.cause != nil {
            scope.isCut = true
        } else if let error, scope.failure == nil, error != "cancelled" || !job.isCancelledAlone {
            scope.failure = error
            isFirstFailure = scope.cause == nil
        }
        for waiter in job.waiters { waiter.resume() }
        if isFirstFailure { scope.cancel(because: .failure) }
        if scope.members.isEmpty { scope.whenAllHaveEnded() }
    }

    private func performScope(
        _ node: ScopeNode, until deadline: RunLoop.Instant, isShield: Bool = false, hasTasks: Bool = false,
        in caller: Job, _ place: Place?, then: @escaping Continuation
    ) {
        let scope = Scope(deadline, in: caller.scope, isShield: isShield)
        let body = start(node, in: scope, hasTasks ? Place(scope: scope, seen: .max) : place)
        arm(scope)
        caller.scope?.lookAtDeadlines(now)
        if !isShield {
            if caller.isCancelled { scope.cancel(because: .caller) }
            caller.interrupt = { scope.cancel(because: .caller) }
        }
        scope.whenAllHaveEnded = { [self] in
            jobs.append { [self] in
                caller.interrupt = nil
                forget(scope.alarm)
                caller.scope?.lookAtDeadlines(now)
                then(result(of: scope, body, isCancelled: caller.isCancelled && !isShield))
            }
        }
    }

    private func arm(_ scope: Scope) {
        forget(scope.alarm)
        guard scope.cause == nil, scope.deadline < .distantFuture else { return }
        guard scope.deadline > now else { return scope.cancel(because: .deadline) }
        scope.alarm = call(at: scope.deadline) { scope.cancel(because: .deadline) }
    }

    private func result(of scope: Scope, _ body: Job, isCancelled: Bool) -> String? {
        let error = scope.failure ?? (scope.isCut ? "cancelled" : nil)
        if scope.cause == .deadline && !isCancelled { return error.map { "timeout \(scope.deadline) (\($0))" } }
        return scope.failure ?? body.end!.error ?? (scope.cause == .program ? nil : error)
    }

    // MARK: Nodes

    private struct Place {
        var scope: Scope
        var seen: Int
    }

    /// - Parameter date: the time when the caller is cancelled.
    static func ends(of node: ScopeNode, cancelledAt date: RunLoop.Instant) -> [ScopeEnd] {
        let model = ScopeModel()
        let job = Job(in: nil)
        model.jobs.append { model.perform(node, in: job, nil) { _ in } }
        if date < .distantFuture { _ = model.call(at: date) { job.cancel() } }
        model.run()
        return model.ends
    }

    private func perform(_ node: ScopeNode, in job: Job, _ place: Place?, then: @escaping Continuation) {
        perform(node.kind, node.number, in: job, place) { [self] error in
            ends.append(ScopeEnd(number: node.number, outcome: error ?? "done", date: now))
            then(error)
        }
    }

    private func perform(
        _ kind: ScopeNode.Kind, _ number: Int, in job: Job, _ place: Place?, then: @escaping Continuation
    ) {
        switch kind {
        case .sleep(let duration): sleep(duration, in: job, then: then)
        case .compute(let duration):
            now = now + duration
            then(nil)
        case .rest(let duration): _ = call(at: now + duration) { [self] in jobs.append { then(nil) } }
        case .fail: then("failed \(number)")
        case .sequence(let nodes): performAll(nodes[...], in: job, place, then: then)
        case .attempt(let node): perform(node, in: job, place) { _ in then(nil) }
        case .timeout(let limit, let node): performScope(node, until: now + limit, in: job, place, then: then)
        case .deadline(let date, let node): performScope(node, until: date, in: job, place, then: then)
        case .shield(let limit, let node):
            performScope(node, until: now + limit, isShield: true, in: job, place, then: then)
        case .tasks(let limit, let node):
            let deadline = limit.map { now + $0 } ?? .distantFuture
            performScope(node, until: deadline, hasTasks: true, in: job, place, then: then)
        case .start, .value, .cancelTask, .cancel, .move: perform(kind, in: job, among: place!, then: then)
        }
    }

    private func performAll(
        _ nodes: ArraySlice<ScopeNode>, in job: Job, _ place: Place?, then: @escaping Continuation
    ) {
        guard let node = nodes.first else { return then(nil) }
        perform(node, in: job, place) { [self] error in
            if error != nil { return then(error) }
            performAll(nodes.dropFirst(), in: job, place, then: then)
        }
    }

    private func sleep(_ duration: Duration, in job: Job, then: @escaping Continuation) {
        guard duration > .zero else {
            job.scope?.lookAtDeadlines(now)
            return then(job.isCancelled ? "cancelled" : nil)
        }
        let date = now + duration
        wait(job, then: then) {
            let order = call(at: date) { [self] in
                job.interrupt = nil
                jobs.append { then(nil) }
            }
            return { [self] in forget(order) }
        }
    }

    private func perform(_ kind: ScopeNode.Kind, in job: Job, among place: Place, then: @escaping Continuation) {
        let scope = place.scope
        switch kind {
        case .start(let node):
            scope.children.append(start(node, in: scope, Place(scope: scope, seen: scope.children.count)))
        case .value(let choice):
            let seen = min(place.seen, scope.children.count)
            if seen > 0 { return awaitValue(of: scope.children[choice % seen], in: job, then: then) }
        case .cancelTask(let choice) where !scope.children.isEmpty:
            let child = scope.children[choice % scope.children.count]
            child.isCancelledAlone = true
            child.cancel()
        case .cancel:
            scope.lookAtDeadlines(now)
            scope.cancel(because: .program)
        case .move(let duration):
            scope.lookAtDeadlines(now)
            guard scope.cause == nil else { break }
            scope.deadline = now + duration
            arm(scope)
        default: break
        }
        then(nil)
    }

    private func awaitValue(of child: Job, in job: Job, then: @escaping Continuation) {
        if let end = child.end { return then(end.error) }
        wait(job, then: then) {
            let waiter = Waiter { [self] in
                job.interrupt = nil
                jobs.append { then(child.end!.error) }
            }
            child.waiters.append(waiter)
            return { child.waiters.removeAll { $0 === waiter } }
        }
    }
}
