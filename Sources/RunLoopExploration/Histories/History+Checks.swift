@_spi(Ports) internal import RunLoopCore

extension History {
    /// Throws an ``HistoryError`` if no order explains all operations so far.
    ///
    /// The search is Wing and Gong's, with Lowe's memory, for each part separately. It is linear in the number of
    /// operations as long as few overlap, and exponential in the number that overlap in one part. Orders in which few
    /// operations without an outcome have happened are tried first. After 250,000 states of a part, besides one for
    /// each operation, the search is given up, with an error that says so: ``HistoryError/isUndecided``.
    public func check() throws(HistoryError) {
        for (part, entries) in parts {
            if let failure = Linearization(of: entries, from: model).failure {
                throw HistoryError(entries, failure, in: part)
            }
        }
    }

    /// Throws an ``HistoryError`` if no order explains all operations so far and keeps the promises to the clients'
    /// sessions.
    ///
    /// Use this check for systems that are not linearizable, such as replicas that lag behind one another. The order
    /// need not follow time: only operations of the same client keep their order, if one has ended before the other
    /// began, and if the guarantees demand it. An operation without an outcome may have happened or not, and nothing
    /// has to come after it.
    ///
    /// ```swift
    /// try history.check([.readYourWrites, .monotonicReads]) { if case .read = $0 { true } else { false } }
    /// ```
    ///
    /// Each part is checked separately, as by ``check()``: the guarantees hold for each key, and say nothing about two
    /// of them. The search is quadratic in the number of operations of a part if the changes are found in the order in
    /// which they began. It may be exponential in the number of changes; with ``SessionGuarantees/monotonicWrites``, in
    /// the number of clients that change the part. After 100,000 states the search is given up, as by ``check()``.
    ///
    /// - Parameters:
    ///   - guarantees: the guarantees of the system.
    ///   - isRead: returns `true` for a read, which changes nothing; all other operations are changes.
    public func check(
        _ guarantees: SessionGuarantees, reads isRead: (Model.Operation) -> Bool
    ) throws(HistoryError) {
        for (part, entries) in parts {
            let order = SessionOrder(of: entries, from: model, keeping: guarantees, reads: isRead)
            if let failure = order.failure { throw HistoryError(entries, failure, in: part, keeping: guarantees) }
        }
    }

    /// The operations that may have happened, by the part of the state that they concern.
    private var parts: [(String?, [Entry])] {
        let entries = state.withLock(\.entries).filter { !$0.isRefused }
        let parts = Dictionary(grouping: entries) { Model.part(of: $0.operation) }
        return parts.sorted { ($0.key ?? "") < ($1.key ?? "") }.map { ($0.key, $0.value) }
    }
}
