import Dispatch
import Glibc

/// A program of Dispatch, locks and tasks that does not know of simulations. Its argument names one of its faults, or the
/// same without the fault; it exits with 1 if the fault has shown itself.
@main
struct Races {
    static func main() async {
        let arguments = CommandLine.arguments.dropFirst()
        let isRight = arguments.last == "right"
        switch arguments.first {
        case "update": update(isRight)
        case "deadlock": deadlock(isRight)
        case "signal": signal(isRight)
        case "tasks": await tasks(isRight)
        case "threads": threads()
        default: exit(2)
        }
    }

    /// Runs blocks at the same time, and waits for their ends.
    private static func atOnce(_ blocks: (@Sendable () -> Void)...) {
        let group = DispatchGroup()
        for block in blocks { DispatchQueue.global().async(group: group, execute: block) }
        group.wait()
    }

    /// A value is read and written under a lock, but not under one.
    private static func update(_ isRight: Bool) {
        let lock = Lock()
        nonisolated(unsafe) var value = 0
        @Sendable func increment() {
            lock.lock()
            let old = value
            if !isRight {
                lock.unlock()
                lock.lock()
            }
            value = old + 1
            lock.unlock()
        }
        atOnce(increment, increment)
        exit(value == 2 ? 0 : 1)
    }

    /// Two locks are taken in two orders.
    private static func deadlock(_ isRight: Bool) {
        let (one, two) = (Lock(), Lock())
        @Sendable func take(_ first: Lock, _ second: Lock) {
            first.lock()
            second.lock()
            second.unlock()
            first.unlock()
        }
        atOnce({ take(one, two) }, { isRight ? take(one, two) : take(two, one) })
    }

    /// A signal that comes before the wait is lost, because the wait does not look at the state first.
    private static func signal(_ isRight: Bool) {
        let lock = Lock()
        nonisolated(unsafe) var isDone = false
        DispatchQueue.global().async {
            lock.lock()
            isDone = true
            lock.signal()
            lock.unlock()
        }
        lock.lock()
        while !isRight || !isDone {
            guard lock.wait(atMost: 10) else { exit(1) }
            if isDone { break }
        }
        lock.unlock()
    }

    /// Threads begin with the stacks of others that have ended.
    private static func threads() {
        @Sendable func beginAndJoin() {
            for _ in 0..<20 {
                var thread = pthread_t()
                pthread_create(
                    &thread, nil,
                    { _ in
                        withUnsafeTemporaryAllocation(byteCount: 16_384, alignment: 1) {
                            $0.baseAddress.map { memset($0, 1, 16_384) }
                        }
                    }, nil)
                sched_yield()
                pthread_join(thread, nil)
            }
        }
        atOnce(beginAndJoin, beginAndJoin, beginAndJoin)
        exit(0)
    }

    private actor Account {
        var balance = 100

        func withdrawBlindly(_ amount: Int) { balance -= amount }

        func withdraw(_ amount: Int) -> Bool {
            guard balance >= amount else { return false }
            balance -= amount
            return true
        }
    }

    /// Tasks look at an actor's state, and change it after others may have done so.
    private static func tasks(_ isRight: Bool) async {
        let account = Account()
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<2 {
                group.addTask {
                    if isRight { return _ = await account.withdraw(100) }
                    let balance = await account.balance
                    if allows(100, from: balance) { await account.withdrawBlindly(100) }
                }
            }
        }
        await exit(account.balance < 0 ? 1 : 0)
    }

    /// A call for which the task leaves the actor.
    @inline(never)
    private static func allows(_ amount: Int, from balance: Int) -> Bool { balance >= amount }

    /// A lock with a condition.
    private final class Lock: @unchecked Sendable {
        private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
        private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)

        init() {
            pthread_mutex_init(mutex, nil)
            pthread_cond_init(condition, nil)
        }

        func lock() { pthread_mutex_lock(mutex) }
        func unlock() { pthread_mutex_unlock(mutex) }
        func signal() { pthread_cond_signal(condition) }

        /// Returns `false` if the time has passed.
        func wait(atMost seconds: Int) -> Bool {
            var date = timespec()
            clock_gettime(CLOCK_REALTIME, &date)
            date.tv_sec += seconds
            return pthread_cond_timedwait(condition, mutex, &date) == 0
        }
    }
}
