#if Adapters
public import CoreMetrics
@_spi(Ports) public import RunLoopKit

/// A publisher of a loop's metrics at regular intervals.
///
/// ```swift
/// let metrics = LoopMetrics(loop.remote, name: "main")
/// ```
///
/// Every metric carries the dimension `loop` with the given name:
/// - the counters of ``/RunLoopKit/RunLoop/Statistics``: `runloop.passes`, `runloop.waits`, `runloop.fires`,
///   `runloop.savedWakeUps`, `runloop.sources`, `runloop.blocks`, `runloop.jobs` and `runloop.parks`;
/// - `runloop.lateness`, a gauge in seconds for each of the `quantile` dimensions 0.5, 0.99 and 1: the lateness of the
///   deadlines served since the last publication;
/// - `runloop.response`, a timer: the time that the loop took to answer a request for its statistics. A responsive loop
///   answers quickly; while a handler blocks it, there is no answer.
///
/// The object has a thread that asks, and the loop answers in its next pass, in any mode. Each request wakes the loop,
/// but keeps no run from finishing. Publishing stops when the object is released or the loop ends. `LoopMetrics` is
/// `Sendable`; any thread may use it.
public final class LoopMetrics: Sendable {
    private let thread: LoopThread

    /// Starts publishing, first after one interval.
    ///
    /// - Parameters:
    ///   - loop: the loop.
    ///   - name: the value of the dimension `loop`.
    ///   - interval: the time between publications, above zero.
    ///   - factory: makes the metrics; `nil`, the default, means the process's factory.
    public init(
        _ loop: RunLoop.Remote, name: String, interval: Duration = .seconds(10), factory: (any MetricsFactory)? = nil
    ) {
        require(interval > .zero, "metrics are published at an interval above zero; it was given \(interval)")
        let publisher = Publisher(name: name, factory: factory ?? MetricsSystem.factory)
        thread = LoopThread(name: "metrics", isService: true) { own in
            let timer = Timer(fire: own.now + interval, interval: interval, repeats: true) { timer in
                if !publisher.ask(loop) { timer.invalidate() }
            }
            timer.name = "metrics"
            own.add(timer, forMode: .default)
        }
    }

    deinit {
        thread.stop()
    }
}

@_spi(Ports) extension LoopMetrics: Opaque {}

private final class Publisher: Sendable {
    private let counters: [Counter]
    private let quantiles: [(share: Double, gauge: Gauge)]
    private let response: CoreMetrics.Timer
    private let state = Locked(State())

    private struct State {
        var published = RunLoop.Statistics()
        var isAsked = false
    }

    init(name: String, factory: any MetricsFactory) {
        let loop = ("loop", name)
        counters = RunLoop.Statistics().counters.map {
            Counter(label: "runloop.\($0.name)", dimensions: [loop], factory: factory)
        }
        quantiles = [0.5, 0.99, 1].map { share in
            let text = share == 1 ? "1" : "\(share)"
            return (share, Gauge(label: "runloop.lateness", dimensions: [loop, ("quantile", text)], factory: factory))
        }
        response = CoreMetrics.Timer(label: "runloop.response", dimensions: [loop], factory: factory)
    }

    /// Asks the loop to publish. Does nothing while an earlier request is unanswered.
    ///
    /// - Returns: `false` if the loop has ended.
    func ask(_ loop: RunLoop.Remote) -> Bool {
        guard
            !state.withLock({ state in
                defer { state.isAsked = true }
                return state.isAsked
            })
        else { return true }
        let question = Question(at: loop.now, from: self)
        return loop.perform(inModes: .every) { loop in
            self.response.recordNanoseconds((loop.now - question.date).nanoseconds)
            self.publish(loop.statistics)
        }
    }

    /// A request that ends when the loop has answered it, or has ended without an answer.
    private final class Question: Sendable {
        let date: RunLoop.Instant
        private let publisher: Publisher

        init(at date: RunLoop.Instant, from publisher: Publisher) {
            self.date = date
            self.publisher = publisher
        }

        deinit {
            publisher.state.withLock { $0.isAsked = false }
        }
    }

    private func publish(_ statistics: RunLoop.Statistics) {
        let before = state.withLock { state in
            defer { state.published = statistics }
            return state.published
        }
        for (counter, (now, then)) in zip(counters, zip(statistics.counters, before.counters)) {
            counter.increment(by: now.value - then.value)
        }
        let lateness = statistics.lateness.since(before.lateness)
        for (share, gauge) in quantiles { gauge.record(lateness.quantile(share) / .seconds(1)) }
    }
}
#else
@available(*, unavailable, message: "RunLoopMetrics needs the trait Adapters: .package(…, traits: [\"Adapters\"])")
public struct LoopMetrics {
    public init(_ loop: Any, name: String, interval: Duration = .zero, factory: Any? = nil) {}
}
#endif
