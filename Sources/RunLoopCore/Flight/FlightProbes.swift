internal import CShims

/// The probes for bpftrace and SystemTap. Each checks whether it is watched, which is one load.
enum FlightProbes {
    @inline(__always)
    static func callBegins(_ makeCallee: @autoclosure () -> RunLoop.Callee, _ lateness: Int64?) {
        if rlk_watches_call__begin() != 0 {
            let callee = makeCallee()
            withWords(of: callee) { rlk_probe_call__begin($0, $1, $2, callee.origin.line, callee.number) }
        }
        if let lateness, rlk_watches_timer__fire() != 0 {
            let callee = makeCallee()
            withWords(of: callee) { rlk_probe_timer__fire($0, $1, $2, callee.origin.line, lateness) }
        }
    }

    @inline(__always)
    static func callEnds(after nanoseconds: Int64) {
        if rlk_watches_call__end() != 0 { rlk_probe_call__end(nanoseconds) }
    }

    @inline(__always)
    static func sleepBegins(until date: RunLoop.Instant) {
        if rlk_watches_sleep__begin() != 0 { rlk_probe_sleep__begin(date.nanoseconds) }
    }

    @inline(__always)
    static func sleepEnds(
        after nanoseconds: Int64, by kind: @autoclosure () -> String, _ name: @autoclosure () -> String
    ) {
        if rlk_watches_sleep__end() != 0 { rlk_probe_sleep__end(nanoseconds, kind(), name()) }
    }

    @inline(__always)
    static func posts(_ callee: RunLoop.Callee) {
        if rlk_watches_post() != 0 {
            withWords(of: callee) { rlk_probe_post($0, $1, $2, callee.origin.line, callee.number) }
        }
    }

    /// Calls `body` with the kind, the name and the file as C strings.
    @inline(never)
    private static func withWords(
        of callee: RunLoop.Callee, _ body: (UnsafePointer<CChar>, UnsafePointer<CChar>, UnsafePointer<CChar>) -> Void
    ) {
        callee.kind.rawValue.withCString { kind in
            (callee.name ?? "").withCString { name in callee.origin.file.withCString { body(kind, name, $0) } }
        }
    }
}
