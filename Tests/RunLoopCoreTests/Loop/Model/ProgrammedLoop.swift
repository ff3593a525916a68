/// A loop that runs a ``LoopProgram``: the run loop itself, or the ``ModelLoop`` written from the documentation.
///
/// Items have numbers, and times are milliseconds.
protocol ProgrammedLoop: AnyObject {
    /// Receives the calls of handlers.
    var program: LoopProgram? { get set }

    var now: Int { get }
    var currentMode: String? { get }
    func spend(_ milliseconds: Int)

    func make(_ item: Int, _ kind: ItemPlan)
    func add(_ item: Int, to modes: ModePlan)
    func remove(_ item: Int, from modes: ModePlan)
    func contains(_ item: Int, in modes: ModePlan) -> Bool
    func invalidate(_ item: Int)
    func isValid(_ item: Int) -> Bool

    /// Sets the `fireDate` of a timer.
    func setDate(_ item: Int, to date: Int)
    func fire(_ item: Int)
    /// Returns the date of a timer that is not being called, or of a timeout; `nil` if it has none.
    func date(_ item: Int) -> Int?
    func missedFires(_ item: Int) -> Int
    /// Adds a timeout.
    func add(_ timeout: Int, at date: Int, to modes: ModePlan)
    func cancel(_ timeout: Int)
    /// Arms a timeout or a call again.
    func rearm(_ item: Int, at date: Int) -> Bool
    /// Makes a delayed call.
    func call(_ item: Int, after delay: Int, in modes: ModePlan)
    func cancelCall(_ item: Int)
    func isPending(_ call: Int) -> Bool
    /// Signals a source.
    func signal(_ source: Int, isRemote: Bool)

    func post(_ block: Int, in modes: ModePlan, isRemote: Bool)
    func run(in mode: String, until limit: Int?, returnsAfterSource: Bool) -> String
    func stop(isRemote: Bool)
    func wakeUp(isRemote: Bool)
    func addCommonMode(_ mode: String)
}

/// The plan of an item.
enum ItemPlan {
    case timer(date: Int, interval: Int?)
    case timeout
    case observer(activities: [ActivityPlan], repeats: Bool, order: Int)
    case source(order: Int)
}

enum ActivityPlan: String, CaseIterable {
    case entry, beforeTimers, beforeSources, beforeWaiting, afterWaiting, exit
}

/// A set of modes.
struct ModePlan: CustomStringConvertible {
    var names: [String] = []
    var isCommon = false
    /// `true` for every mode, alone.
    var isEvery = false

    var isEmpty: Bool { names.isEmpty && !isCommon && !isEvery }
    var description: String { "\(names + (isCommon ? ["common"] : []) + (isEvery ? ["every"] : []))" }
}
