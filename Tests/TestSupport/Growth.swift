import Glibc

/// How much more processor time of this thread one of `many` takes than one of `few`: about 1 if the time that one takes
/// does not depend on how many there are, about `many / few` if all are looked at for each.
///
/// - Parameter body: carries out as many operations as it is told.
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
