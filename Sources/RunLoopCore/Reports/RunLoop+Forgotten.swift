internal import Glibc

// Reports of items that never have their turn, for the trace of their loop.

extension RunLoop {
    /// `true` if the environment asks for a line about each ignored request.
    static let warnsOfIgnored = getenv("RUNLOOP_DEBUG").map { String(cString: $0) == "1" } ?? false

    /// Returns a trace that writes the ignored requests of a loop to standard error.
    static func warning(ofLoop name: String?) -> (TraceEvent) -> Void {
        { event in
            if case .ignored = event { warn("\(name.map { "loop \(quoted($0)): " } ?? "")\(event)") }
        }
    }

    /// Reports a traced run that was to last until a date and has ended at once. Most runs without a limit end so.
    @inline(never)
    func tellOfEmptyRun(in mode: Mode, until limit: Instant) {
        guard limit != .distantFuture, limit > now else { return }
        emit(
            .ignored(
                "the run in \(mode) until \(limit) has ended at once, because nothing is scheduled in \(mode); "
                    + "schedule a CustomSource there to have it wait"))
    }

    /// Notes that a run in `mode` begins while the loop is traced.
    func noteTracedRun(in mode: Mode) {
        self[forgotten].modesRun.insert(mode)
    }

    /// Reports items that wait for modes in which no run has begun while the loop was traced, once for each set of
    /// modes. Call it when the outermost run, in `mode`, has finished. O(n log n) in the number of items.
    func tellOfModesNeverRun(after mode: Mode) {
        let forgotten = self[forgotten]
        forgotten.modesRun.insert(mode)
        let waiting = dumpAtRest().items.filter { item in
            item.keepsAlive && !item.isEverywhere && !item.modes.isEmpty
                && item.modes.allSatisfy { !forgotten.modesRun.contains($0) }
        }
        for (modes, items) in Dictionary(grouping: waiting, by: \.modes).ordered(by: { $0.key[0].id < $1.key[0].id })
        where forgotten.toldModes.insert(modes).inserted {
            emit(
                .ignored(
                    "the run in \(mode) has finished, but \(Self.list(items)) scheduled in \(Modes(modes)), where the loop has "
                        + "not run while it was traced; run it there too, or use a mode in which it runs"))
        }
    }

    /// Reports items in a loop that ends, or whose process ends, without having been run.
    package func tellIfNeverRun() {
        guard isTraced, statistics.passes == 0, !hasEnded else { return }
        let known: Forgotten? = locals.value(of: forgotten)
        guard known == nil else { return }
        let items = dumpAtRest().items.filter(\.keepsAlive)
        guard !items.isEmpty else { return }
        emit(.ignored("the loop ends without having been run, but \(Self.list(items)) scheduled in it; run the loop"))
    }

    /// Returns a list of items, for example `timer "poll" (Daemon/main.swift:12) and 2 more are`.
    private static func list(_ items: [Dump.Item]) -> String {
        items[0].title + (items.count == 1 ? " is" : " and \(items.count - 1) more are")
    }
}

/// The modes in which a loop has run while it was traced, and the sets of modes that were reported.
private final class Forgotten {
    var modesRun: Set<RunLoop.Mode> = []
    var toldModes: Set<[RunLoop.Mode]> = []
}

private let forgotten = RunLoop.Local { _ in Forgotten() }
