import CGLibUnix
import RunLoopKit

/// GLib's main context of the calling thread, with a guest as a source.
final class GLibHost: Host {
    let guest: RunLoop.Guest
    let name = "GLib"
    private let source: UnsafeMutablePointer<Source>
    private var mode = RunLoop.Mode.default
    private var result = RunLoop.RunResult.timedOut

    /// A source of GLib, with the host behind it.
    private struct Source {
        var base = GSource()
        var host: Unmanaged<GLibHost>
        var tag: gpointer?
    }

    // GLib keeps the address.
    nonisolated(unsafe) private static let functions = {
        let functions = UnsafeMutablePointer<GSourceFuncs>.allocate(capacity: 1)
        functions.initialize(to: GSourceFuncs())
        functions.pointee.prepare = { source, _ in
            let host = GLibHost.of(source)
            return host.guest.prepare(in: host.mode) == .distantPast ? 1 : 0
        }
        functions.pointee.check = { source in
            let tag = UnsafeMutableRawPointer(source!).assumingMemoryBound(to: Source.self).pointee.tag
            return g_source_query_unix_fd(source, tag).rawValue == 0 ? 0 : 1
        }
        functions.pointee.dispatch = { source, _, _ in
            let host = GLibHost.of(source)
            host.result = host.guest.run(in: host.mode)
            return 1
        }
        return functions
    }()

    private static func of(_ source: UnsafeMutablePointer<GSource>?) -> GLibHost {
        UnsafeMutableRawPointer(source!).assumingMemoryBound(to: Source.self).pointee.host.takeUnretainedValue()
    }

    init(_ guest: RunLoop.Guest) throws {
        self.guest = guest
        let base = g_source_new(Self.functions, guint(MemoryLayout<Source>.size))!
        source = UnsafeMutableRawPointer(base).assumingMemoryBound(to: Source.self)
        source.pointee.host = .passUnretained(self)
        source.pointee.tag = g_source_add_unix_fd(base, try guest.fileDescriptor, G_IO_IN)
        // A handler of ours may run the context.
        g_source_set_can_recurse(base, 1)
        g_source_attach(base, nil)
    }

    func run(in mode: RunLoop.Mode) -> RunLoop.RunResult {
        let outer = self.mode
        defer { self.mode = outer }
        (self.mode, result) = (mode, .timedOut)
        while result == .timedOut { g_main_context_iteration(nil, 1) }
        return result
    }
}
