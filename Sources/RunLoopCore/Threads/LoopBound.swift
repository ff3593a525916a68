internal import Synchronization

/// Carries a value of a loop's thread through code that may run on any thread, and back.
///
/// ```swift
/// let timer = LoopBound(Timer.scheduledTimer(withTimeInterval: .seconds(1), repeats: true) { … }, loop: .current)
/// download { // a `@Sendable` closure, called on some thread
///     timer.remote.perform { _ in timer.value.invalidate() }
/// }
/// ```
///
/// Any thread may hold it, pass it on and release it; it is `Sendable`. Only the loop's thread can reach the value. The
/// loop keeps the value as long as anybody holds this object. It lets the value go on its own thread, soon after the
/// last reference has gone or when the loop ends. After the end of the loop there is no value, and asking for it traps.
public final class LoopBound<Value>: Sendable {
    /// What any thread may ask of the loop.
    public let remote: RunLoop.Remote

    private let number = lastNumber.wrappingAdd(1, ordering: .relaxed).newValue

    /// Binds a value to a loop. Call it on the loop's thread.
    public init(_ value: Value, loop: RunLoop) {
        remote = loop.remote
        loop[boundValues].set(value, number)
    }

    deinit {
        if let loop = remote.installed {
            loop[boundValues].remove(number)
        } else {
            _ = remote.mailbox.post(.urgent { [number] in $0[boundValues].remove(number) })
        }
    }

    /// The value. Traps on any thread but the loop's, and after the loop has ended.
    public var value: Value {
        get { table.value(number) as! Value }
        set { table.set(newValue, number) }
    }

    private var table: BoundValues {
        guard let loop = remote.installed else {
            fatalError(
                "a value that is bound to a loop is used on the loop's own thread only; post a block to it there")
        }
        require(!loop.hasEnded, "the loop has ended, and let go of the values that were bound to it")
        return loop[boundValues]
    }
}

private let lastNumber = Atomic(0)
private let boundValues = RunLoop.Local { _ in BoundValues() }

/// The values that a loop keeps for others. A value is let go when the table is in order: its deinit may do anything.
private final class BoundValues {
    private var values: [Int: Any] = [:]

    func value(_ number: Int) -> Any { values[number]! }

    func set(_ value: Any, _ number: Int) {
        let old = values.updateValue(value, forKey: number)
        withExtendedLifetime(old) {}
    }

    func remove(_ number: Int) {
        let old = values.removeValue(forKey: number)
        withExtendedLifetime(old) {}
    }
}
