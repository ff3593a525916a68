import Glibc
import RunLoopCore
import RunLoopKit
import Synchronization
import Testing

/// A list that threads write to.
final class Log<Entry: Sendable>: Sendable {
    private let state = Locked<[Entry]>([])

    var entries: [Entry] { state.withLock { $0 } }

    func append(_ entry: Entry) {
        state.withLock { $0.append(entry) }
    }
}

/// An object whose life is watched.
final class Token: Sendable {
    private let onRelease: @Sendable () -> Void

    init(onRelease: @escaping @Sendable () -> Void = {}) {
        self.onRelease = onRelease
    }

    deinit {
        onRelease()
    }

    /// Is captured by a closure, so that the closure keeps it.
    func touch() {}
}

/// A weak reference that any thread may look at.
final class Weak<Object: AnyObject>: @unchecked Sendable {
    private(set) weak var object: Object?

    init(_ object: Object?) {
        self.object = object
    }

    var isGone: Bool { object == nil }
}

/// Carries what must not leave its thread to another one: for tests of what happens then.
struct Smuggled<Value>: @unchecked Sendable {
    let value: Value

    init(_ value: Value) {
        self.value = value
    }
}

/// Names the calling thread.
func threadNumber() -> UInt {
    UInt(bitPattern: Int(bitPattern: UnsafeRawPointer(bitPattern: UInt(pthread_self()))))
}

/// Waits, giving up after a time that no test needs, until something is so.
func eventually(
    _ what: Comment, sourceLocation: SourceLocation = #_sourceLocation, _ isSo: () -> Bool
) -> Bool {
    let clock = ContinuousClock()
    let end = clock.now + .seconds(120)
    var turns = 0
    while !isSo() {
        guard clock.now < end else {
            Issue.record(what, sourceLocation: sourceLocation)
            return false
        }
        turns += 1
        if turns % 1000 == 0 { usleep(100) } else { sched_yield() }
    }
    return true
}

/// Whether what a process wrote before it ended holds `sentence`. Optimised code traps without a word.
func says(_ sentence: String, _ result: ExitTest.Result?) -> Bool {
    #if DEBUG
        let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        if text.contains(sentence) { return true }
        print("the process wrote, without \"\(sentence)\":\n\(text)")
        return false
    #else
        return true
    #endif
}
