#if Adapters
import CGLib

/// A closure that GLib calls.
final class Callback {
    /// Returns `true` if the source stays.
    private let body: () -> Bool

    init(_ body: @escaping () -> Bool) {
        self.body = body
    }

    static let function: GSourceFunc = { pointer in
        Unmanaged<Callback>.fromOpaque(pointer!).takeUnretainedValue().body() ? 1 : 0
    }

    static let release: GDestroyNotify = { Unmanaged<Callback>.fromOpaque($0!).release() }

    /// A retained pointer to the closure, for a source's data.
    var pointer: gpointer { Unmanaged.passRetained(self).toOpaque() }
}

/// Attaches a source to a context.
///
/// - Parameter body: returns `true` if the source stays.
@discardableResult
private func attach(
    _ source: UnsafeMutablePointer<GSource>?, to context: OpaquePointer?, priority: Int32, _ body: @escaping () -> Bool
) -> UInt32 {
    defer { g_source_unref(source) }
    g_source_set_priority(source, priority)
    g_source_set_callback(source, Callback.function, Callback(body).pointer, Callback.release)
    return g_source_attach(source, context)
}

@discardableResult
func addTimeout(
    _ milliseconds: UInt32, to context: OpaquePointer?, priority: Int32 = 0, _ body: @escaping () -> Bool
) -> UInt32 {
    attach(g_timeout_source_new(milliseconds), to: context, priority: priority, body)
}

@discardableResult
func addIdle(to context: OpaquePointer?, priority: Int32 = 200, _ body: @escaping () -> Bool) -> UInt32 {
    attach(g_idle_source_new(), to: context, priority: priority, body)
}

/// Adds a source that is ready when a descriptor is readable.
@discardableResult
func addDescriptor(
    _ descriptor: Int32, to context: OpaquePointer?, priority: Int32 = 0, _ body: @escaping () -> Bool
) -> UInt32 {
    let source = g_unix_fd_source_new(descriptor, G_IO_IN)
    defer { g_source_unref(source) }
    g_source_set_priority(source, priority)
    let function: GUnixFDSourceFunc = { _, _, pointer in Callback.function(pointer) }
    g_source_set_callback(
        source, unsafeBitCast(function, to: GSourceFunc.self), Callback(body).pointer, Callback.release)
    return g_source_attach(source, context)
}

func removeSource(_ number: UInt32, from context: OpaquePointer?) {
    if let source = g_main_context_find_source_by_id(context, number) { g_source_destroy(source) }
}
#endif
