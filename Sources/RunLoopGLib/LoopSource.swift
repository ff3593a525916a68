#if Adapters
internal import CGLib
internal import RunLoopKit

/// A source that serves the loop in runs of its main context.
///
/// The source has the highest priority, so that nothing in the context starves the loop. A loop that is always ready
/// yields a turn to the other sources after every eight of its own.
final class LoopSource {
    private unowned let owner: GLibContext
    private let loop: RunLoop
    /// The loop's guest, made for GLib's first run: without such a run, the loop need not report its changes.
    private lazy var guest = loop.makeGuest()
    private let source: UnsafeMutablePointer<Fields>
    /// The number of consecutive turns that the loop has had.
    private var turns = 0

    private static let longestRow = 8

    /// A GLib source followed by a reference to this object.
    private struct Fields {
        var base = GSource()
        var object: Unmanaged<LoopSource>
        // Not one of GLib's Unix descriptors, because a source with those is ready whenever they are.
        var descriptor: GPollFD
    }

    init(_ owner: GLibContext, _ loop: RunLoop, in context: OpaquePointer) throws(RunLoop.GuestError) {
        (self.owner, self.loop) = (owner, loop)
        let descriptor = try loop.makeGuest().fileDescriptor
        let base = g_source_new(Self.functions, guint(MemoryLayout<Fields>.size))!
        source = UnsafeMutableRawPointer(base).assumingMemoryBound(to: Fields.self)
        source.pointee.object = .passUnretained(self)
        source.pointee.descriptor = GPollFD(fd: descriptor, events: gushort(G_IO_IN.rawValue), revents: 0)
        // GLib keeps this address.
        let place = MemoryLayout<Fields>.offset(of: \.descriptor)!
        g_source_add_poll(base, (UnsafeMutableRawPointer(base) + place).assumingMemoryBound(to: GPollFD.self))
        g_source_set_name(base, "RunLoop")
        g_source_set_priority(base, .min)
        // A handler of the loop may run the context.
        g_source_set_can_recurse(base, 1)
        g_source_attach(base, context)
    }

    deinit {
        let base = UnsafeMutableRawPointer(source).assumingMemoryBound(to: GSource.self)
        g_source_destroy(base)
        g_source_unref(base)
    }

    // GLib keeps the address.
    nonisolated(unsafe) private static let functions = {
        let functions = UnsafeMutablePointer<GSourceFuncs>.allocate(capacity: 1)
        functions.initialize(to: GSourceFuncs())
        functions.pointee.prepare = { source, _ in
            LoopSource.of(source).prepare()
            return 0
        }
        functions.pointee.check = { source in LoopSource.of(source).hasTurn ? 1 : 0 }
        functions.pointee.dispatch = { source, _, _ in
            let object = LoopSource.of(source)
            object.owner.makePass(of: object.guest)
            return 1
        }
        return functions
    }()

    private static func of(_ source: UnsafeMutablePointer<GSource>?) -> LoopSource {
        UnsafeMutableRawPointer(source!).assumingMemoryBound(to: Fields.self).pointee.object.takeUnretainedValue()
    }

    /// Prepares the guest, whose descriptor becomes readable at the loop's next date, so that GLib needs no time-out.
    private func prepare() {
        if owner.willIterateByItself() { guest.prepare(in: owner.mode) }
    }

    private var hasTurn: Bool {
        let isReady = !owner.isIterating && source.pointee.descriptor.revents != 0
        turns = isReady && turns < Self.longestRow ? turns + 1 : 0
        return turns > 0
    }
}
#endif
