/// Carries a value of a loop's thread through code that may run on any thread, and back.
///
/// ```swift
/// let timer = LoopBound(Timer.scheduledTimer(withTimeInterval: .seconds(1), repeats: true) { … }, loop: .current)
/// download { // a `@Sendable` closure, called on some thread
///     timer.remote.perform { _ in timer.value.invalidate() }
/// }
/// ```
///
/// Any thread may hold this object, pass it along and release it; it is `Sendable`. Only the loop's thread can access
/// the value. The loop keeps the value as long as this object exists. It releases the value on its own thread, soon
/// after the last reference to this object or when the loop ends. After the end of the loop there is no value, and
/// accessing it traps.
public final class LoopBound<Value>: Sendable {
    /// A handle by which any thread may send requests to the loop.
    public let remote: RunLoop.Remote

    private final class Box {
        @exclusivity(unchecked) var value: Value

        init(_ value: Value) {
            self.value = value
        }
    }

    // Unsafe, but only the loop's thread accesses the object, and the loop keeps it. Looking the value up by a key took
    // 1,400 instructions each time.
    private nonisolated(unsafe) let box: UnownedReference<Box>

    /// The place where the value was bound, for the sentence of a trap.
    private let origin: RunLoop.Origin

    /// Binds a value to a loop. Call it on the loop's thread.
    ///
    /// - Parameters:
    ///   - value: the value.
    ///   - loop: the calling thread's loop.
    ///   - file: the place that a trap names, with `line`.
    public init(_ value: Value, loop: RunLoop, file: StaticString = #fileID, line: UInt32 = #line) {
        remote = loop.remote
        origin = RunLoop.Origin(file: file, line: line)
        let box = Box(value)
        self.box = UnownedReference(box)
        loop[boundValues].keep(box)
    }

    deinit {
        // Only the address: if the loop has ended, the box has gone.
        let key = Int(bitPattern: box.address)
        if let loop = remote.installed {
            loop[boundValues].release(key)
        } else {
            _ = remote.mailbox.post(.urgent { $0[boundValues].release(key) })
        }
    }

    /// The bound value. Traps on any thread but the loop's, and after the loop has ended; the sentence names the place
    /// where the value was bound.
    public var value: Value {
        get { checkedBox.with { $0.value } }
        set { checkedBox.with { $0.value = newValue } }
    }

    private var checkedBox: UnownedReference<Box> {
        guard let loop = remote.installedReference, !loop.with({ $0.hasEnded }) else { refuseUse() }
        return box
    }

    @inline(never)
    private func refuseUse() -> Never {
        let words = "a value of \(Value.self) bound to a loop (\(origin))"
        guard remote.isCurrent else {
            fatalError(
                "\(words) was used on another thread: a value that is bound to a loop is used on the loop's own thread "
                    + "only; post a block to it there")
        }
        fatalError("\(words) was used after its loop had ended, which released the values that were bound to it")
    }
}

private let boundValues = RunLoop.Local { _ in BoundValues() }

/// The values that a loop keeps for `LoopBound` objects. A value is released after the table is in order, because its
/// deinit may do anything.
private final class BoundValues {
    private var boxes: [Int: AnyObject] = [:]

    func keep(_ box: AnyObject) {
        assert(boxes[Int(bitPattern: UnownedReference(box).address)] == nil, "a value is bound twice")
        boxes[Int(bitPattern: UnownedReference(box).address)] = box
    }

    func release(_ key: Int) {
        let box = boxes.removeValue(forKey: key)
        withExtendedLifetime(box) {}
    }
}
