extension RunLoop {
    /// Marks a moment that the tests of this program should meet now and then, such as `a snapshot was discarded`.
    ///
    /// ```swift
    /// RunLoop.sometimes("a snapshot was discarded", if: !snapshot.isComplete)
    /// ```
    ///
    /// In a simulation the moment is counted, and a test can require that it was met. On real time the call only looks
    /// up the thread's loop, and does not compute the condition.
    ///
    /// On any thread; a thread without a simulated loop counts nothing. O(1).
    ///
    /// - Parameters:
    ///   - mark: the name of the mark: a sentence in the past tense.
    ///   - isMet: whether the moment is met now. Must have no effects. A mark that is never met has the count zero.
    public static func sometimes(_ mark: StaticString, if isMet: @autoclosure () -> Bool = true) {
        guard let loop = installedReference, loop.with({ $0.isVirtual }) else { return }
        let isMet = isMet()
        loop.with { $0.world.meet("\(mark)", isMet) }
    }
}
