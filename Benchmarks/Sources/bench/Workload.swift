/// One call of the harness.
struct Workload {
    let name: String
    /// The harness's name for the kind; then the size, and the count, whose meaning depends on the kind.
    let kind: String
    let size: Int
    let count: Int
    /// The placement of the loop and the other threads; see `place_other_thread` in the harness.
    let placement: String?
    /// The size and count of a quick run; `nil` if a quick run leaves it out.
    let quick: (size: Int, count: Int)?

    init(
        _ name: String, _ kind: String, _ size: Int, count: Int = 0, on placement: String? = nil,
        quick: (size: Int, count: Int)? = nil
    ) {
        self.name = name
        self.kind = kind
        self.size = size
        self.count = count
        self.placement = placement
        self.quick = quick
    }

    static let all = [
        Workload("churn 1k", "churn", 1000, quick: (1000, 0)),
        Workload("churn 10k", "churn", 10_000),
        Workload("churn 100k", "churn", 100_000, quick: (100_000, 0)),
        Workload("churn 1M", "churn", 1_000_000),
        Workload("embed 1k", "embed", 1000),
        Workload("embed 100k", "embed", 100_000),
        Workload("embed 1M", "embed", 1_000_000),
        Workload("rearm", "rearm", 100_000, count: 10_000_000, quick: (100_000, 1_000_000)),
        Workload("fire 10k", "fire", 10_000, quick: (10_000, 0)),
        Workload("fire 100k", "fire", 100_000, quick: (100_000, 0)),
        Workload("fire 1M", "fire", 1_000_000),
        Workload("periodic", "periodic", 1000, count: 3000, quick: (1000, 1000)),
        Workload("ping cross", "ping", 50_000, on: "cross", quick: (10_000, 0)),
        Workload("ping same", "ping", 50_000, on: "same"),
        Workload("post 1", "post", 1_000_000, count: 1, on: "cross", quick: (300_000, 1)),
        Workload("post 2", "post", 1_000_000, count: 2, on: "both", quick: (300_000, 2)),
        Workload("fdping cross", "fdping", 50_000, on: "cross", quick: (10_000, 0)),
        Workload("fdping same", "fdping", 50_000, on: "same"),
        Workload("chain 100", "chain", 100, quick: (100, 0)),
        Workload("chain 1000", "chain", 1000, quick: (1000, 0)),
        Workload("idle", "idle", 100_000, quick: (20_000, 0)),
        Workload("switch 1", "switch", 1, count: 100_000, quick: (1, 20_000)),
        Workload("switch 100k", "switch", 100_000, count: 100_000, quick: (100_000, 20_000)),
        Workload("common", "common", 10_000, quick: (10_000, 0)),
        Workload("parked", "parked", 10_000, count: 20_000, quick: (10_000, 5000)),
        Workload("virtual", "virtual", 1000, count: 30_000, quick: (1000, 10_000)),
        Workload("yield", "yield", 10_000, quick: (1000, 0)),
        Workload("preferring", "preferring", 20_000, quick: (20_000, 0)),
        Workload("actors", "actors", 100_000, quick: (100_000, 0)),
        Workload("actors, preferring", "actors-preferring", 100_000, quick: (100_000, 0)),
        Workload("hop cross", "hop", 2000, on: "cross", quick: (500, 0)),
        Workload("hop same", "hop", 5000, on: "same"),
        Workload("sleeps 100k", "sleeps", 100_000, quick: (100_000, 0)),
        Workload("sleeps 1M", "sleeps", 1_000_000),
        Workload("guest idle", "guest-idle", 20_000),
        Workload("guest fire", "guest-fire", 300),
        Workload("guest echo", "guest-echo", 20_000),
        Workload("guest descriptor", "guest-descriptor", 20_000),
    ]
}
