/// A description of a store, a queue or a lock, as if it served one client after another: a state, the operations, and
/// their outcomes.
///
/// ```swift
/// struct Register: SequentialModel {
///     enum Operation { case read, write(Int) }
///     var value = 0
///
///     mutating func perform(_ operation: Operation) -> Int {
///         if case .write(let new) = operation { value = new }
///         return value
///     }
/// }
/// ```
///
/// A ``History`` compares the real thing with it. A value is a state, so it is hashed and compared often: keep it small,
/// and have ``part(of:)`` split what can be split.
public protocol SequentialModel: Hashable, Sendable {
    associatedtype Operation: Sendable
    associatedtype Outcome: Hashable & Sendable

    /// Performs an operation, and returns its outcome.
    mutating func perform(_ operation: Operation) -> Outcome

    /// Performs an operation if it may have had this outcome.
    ///
    /// The default compares the outcome with that of ``perform(_:)``. Write it for operations with several legal outcomes,
    /// such as an attempt to lock that may give up.
    ///
    /// - Returns: whether it may; if not, the state does not matter any more.
    mutating func accepts(_ outcome: Outcome, of operation: Operation) -> Bool

    /// The part of the state that an operation concerns, such as its key; `nil`, the default, for the whole. Operations of
    /// different parts must not depend on one another. Each part begins with the same state, and is checked by itself,
    /// which is faster by far.
    static func part(of operation: Operation) -> String?
}

extension SequentialModel {
    public mutating func accepts(_ outcome: Outcome, of operation: Operation) -> Bool { perform(operation) == outcome }

    public static func part(of operation: Operation) -> String? { nil }
}
