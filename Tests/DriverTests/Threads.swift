import Glibc
import RunLoopCore
import Synchronization

/// A thread without a loop, to be joined exactly once.
struct Thread: ~Copyable {
    private let handle: pthread_t

    private final class Body: Sendable {
        let run: @Sendable () -> Void
        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }

    init(_ body: @escaping @Sendable () -> Void) {
        var thread = pthread_t()
        let context = Unmanaged.passRetained(Body(body)).toOpaque()
        let status = pthread_create(
            &thread, nil,
            { context in
                Unmanaged<Body>.fromOpaque(context!).takeRetainedValue().run()
                return nil
            }, context)
        precondition(status == 0, "no thread (errno \(status))")
        handle = thread
    }

    consuming func join() {
        pthread_join(handle, nil)
    }
}

/// Something that threads tell one another.
final class Flag: Sendable {
    private let state = Atomic(false)

    var isSet: Bool { state.load(ordering: .acquiring) }

    func set() {
        state.store(true, ordering: .releasing)
    }
}

/// Counts the wake-ups on their way to another waker.
final class CountingWaker: Waker {
    private let waker: any Waker
    private let wakes = Atomic(0)

    init(_ waker: any Waker) {
        self.waker = waker
    }

    var count: Int { wakes.load(ordering: .acquiring) }

    var now: RunLoop.Instant { waker.now }

    func wake() {
        wakes.add(1, ordering: .acquiringAndReleasing)
        waker.wake()
    }
}

/// A small generator that a failure can be repeated with: the seed is all it needs.
struct SplitMix: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = (state ^ (state >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
