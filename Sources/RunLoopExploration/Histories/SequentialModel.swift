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
/// A ``History`` compares the real system with the model. A value of the model is a state, which is hashed and compared
/// often: keep it small, and split it with ``part(of:)`` where possible.
public protocol SequentialModel: Hashable, Sendable {
    associatedtype Operation: Sendable
    associatedtype Outcome: Hashable & Sendable

    /// Performs an operation, and returns its outcome.
    mutating func perform(_ operation: Operation) -> Outcome

    /// Performs an operation if it may have had the given outcome.
    ///
    /// The default compares the outcome with ``perform(_:)``'s. Implement this method for operations with several
    /// legal outcomes, such as an attempt to lock that may give up.
    ///
    /// - Returns: `true` if the operation may have had the outcome; if not, the state does not matter any more.
    mutating func accepts(_ outcome: Outcome, of operation: Operation) -> Bool

    /// The part of the state that an operation concerns, such as its key; `nil`, the default, for the whole. Operations
    /// of different parts must not depend on one another. Each part begins with the same state, and is checked
    /// separately, which is faster by far.
    static func part(of operation: Operation) -> String?
}

extension SequentialModel {
    public mutating func accepts(_ outcome: Outcome, of operation: Operation) -> Bool { perform(operation) == outcome }

    public static func part(of operation: Operation) -> String? { nil }
}
