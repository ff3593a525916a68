@_spi(Ports) internal import RunLoopCore
public import RunLoopSimulation

/// The operations of clients, each with its beginning and its end, which are legal if one order explains them all.
///
/// Clients record their operations, and ``check()`` throws an ``HistoryError`` if the system under test was not
/// *linearizable*: if no order of the operations gives each its outcome in a ``SequentialModel``, and keeps operations
/// that did not overlap in their order. A simulation throws the error on as its fault, and an exploration looks for the
/// shortest schedule that leads to it.
///
/// ```swift
/// let history = History(of: Register(), in: simulation)
/// network.addHost("client 1") { loop in
///     let store = try await Store.connect(…)
///     try await history.record(.write(1), by: "client 1") { try await store.write(1) }
/// }
/// simulation.advance(by: .seconds(60))
/// try history.check()
/// ```
///
/// An operation that throws, or that never returns because its host has crashed, may have happened, at any time after
/// its beginning, or not. An operation that has returned has happened: a store that loses an acknowledged write at a
/// crash has an illegal history.
///
/// `Sendable`; use it from any thread of the simulation. The order of calls is the simulation's, even at one instant.
public final class History<Model: SequentialModel>: Sendable {
    /// An operation that has begun.
    struct Entry: Sendable {
        let operation: Model.Operation
        let client: String
        let begin: Moment
        var end: (moment: Moment, outcome: Model.Outcome)?
        /// `true` if the operation has certainly not happened.
        var isRefused = false
    }

    /// A time, and the number of the moment in the history.
    struct Moment: Sendable {
        let date: RunLoop.Instant
        let number: Int
    }

    struct State {
        var entries: [Entry] = []
        var moments = 0
    }

    let model: Model
    private let simulation: Simulation
    let state = Locked(State())

    /// Creates an empty history.
    ///
    /// - Parameters:
    ///   - model: the state in which the system under test begins.
    ///   - simulation: the simulation that the clients live in.
    public init(of model: Model, in simulation: Simulation) {
        (self.model, self.simulation) = (model, simulation)
    }

    /// The number of operations that have begun.
    public var count: Int { state.withLock(\.entries.count) }

    /// Performs an operation of a client, and records it.
    ///
    /// - Parameters:
    ///   - operation: the operation, as the model knows it.
    ///   - client: the name of the client.
    ///   - hasNotHappened: returns `true` if an error proves that the operation did not and will not happen, as a
    ///     refused connection does; otherwise it may have.
    ///   - isolation: the isolation of the caller, and of `body`.
    ///   - body: performs the operation.
    /// - Returns: the outcome of `body`.
    @discardableResult
    public func record<Failure: Error>(
        _ operation: Model.Operation, by client: String, refusedIf hasNotHappened: (Failure) -> Bool = { _ in false },
        isolation: isolated (any Actor)? = #isolation, _ body: () async throws(Failure) -> Model.Outcome
    ) async throws(Failure) -> Model.Outcome {
        let record = begin(operation, by: client)
        do {
            let outcome = try await body()
            end(record, with: outcome)
            return outcome
        } catch {
            if hasNotHappened(error) { refuse(record) }
            throw error
        }
    }

    /// An operation that has begun.
    public struct Record: Sendable {
        let index: Int
    }

    /// Records the beginning of an operation, for clients with handlers. As long as its end is not recorded, the
    /// operation may have happened or not.
    public func begin(_ operation: Model.Operation, by client: String) -> Record {
        state.withLock { state in
            let begin = moment(&state)
            state.entries.append(Entry(operation: operation, client: client, begin: begin))
            return Record(index: state.entries.count - 1)
        }
    }

    /// Records the outcome of an operation.
    ///
    /// - Precondition: no end of the operation was recorded.
    public func end(_ record: Record, with outcome: Model.Outcome) {
        finish(record) { state in state.entries[record.index].end = (moment(&state), outcome) }
    }

    /// Records that an operation has not happened, and will not.
    ///
    /// - Precondition: no end of the operation was recorded.
    public func refuse(_ record: Record) {
        finish(record) { state in state.entries[record.index].isRefused = true }
    }

    private func finish(_ record: Record, _ change: (inout State) -> Void) {
        state.withLock { state in
            let entry = state.entries[record.index]
            let isOpen = entry.end == nil && !entry.isRefused
            require(isOpen, "an operation ends once; record the begin of the next one")
            change(&state)
        }
    }

    private func moment(_ state: inout State) -> Moment {
        state.moments += 1
        return Moment(date: simulation.now, number: state.moments)
    }
}
