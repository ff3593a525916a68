import Glibc

/// Returns the ratio of this thread's processor time for one of `many` operations to the time for one of `few`.
///
/// The ratio is about 1 if the cost of one operation does not depend on their number, and about `many / few` if each
/// visits all of them.
///
/// - Parameter body: performs the given number of operations.
package func growth(from few: Int, to many: Int, _ body: (Int) -> Void) -> Double {
    // The least of several runs: the machine has other work to do.
    func least(_ count: Int) -> Double {
        (0..<5).map { _ in
            let begin = processorTime()
            body(count)
            return Double(processorTime() - begin) / Double(count)
        }.min()!
    }
    return least(many) / least(few)
}

private func processorTime() -> Int {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return time.tv_sec * 1_000_000_000 + time.tv_nsec
}
