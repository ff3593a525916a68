/// A loop, or a form of one.
struct Peer {
    let name: String
    /// The name of the executable, without the suffix `Peer`.
    let program: String
    let form: String
    /// The peer that does the same without ours, if that is the only one to compare with.
    let host: String?

    static let usualForm = "default"

    init(_ name: String, _ program: String, form: String = usualForm, host: String? = nil) {
        self.name = name
        self.program = program
        self.form = form
        self.host = host
    }

    /// The reference value of a ratio to the floor.
    static let floor = "floor"
    static let ours = "ours"
    static let call = "ours, delayed call"

    /// `true` for loops that are not usable as such, and so are not candidates for the best.
    var isYardstick: Bool { program == "Floor" || program == "SwiftHeap" }
    var isOurs: Bool { program == "RunLoopKit" }
    /// `true` for a loop of C with exact deadlines, as ours has.
    var isC: Bool { ["Libevent", "Libuv", "Libev", "GLib", "SDEvent"].contains(program) && form != "common" }

    static let all = [
        Peer("ours", "RunLoopKit"),
        Peer(call, "RunLoopKit", form: "delayed call"),
        Peer("ours, sleep of a task", "RunLoopKit", form: "sleep of a task"),
        Peer("ours, tolerance 1 ms", "RunLoopKit", form: "tolerance"),
        Peer("floor", "Floor"),
        Peer("floor, timerfd", "Floor", form: "timerfd"),
        Peer("floor, slack", "Floor", form: "slack"),
        Peer("floor, eventfd", "Floor", form: "eventfd"),
        Peer("floor, pool", "Floor", form: "pool"),
        Peer("swift-heap", "SwiftHeap"),
        Peer("libev", "Libev"),
        Peer("libevent", "Libevent"),
        Peer("libevent, precise", "Libevent", form: "precise"),
        Peer("libevent, threads", "Libevent", form: "threads"),
        Peer("libevent, common", "Libevent", form: "common"),
        Peer("libuv", "Libuv"),
        Peer("glib", "GLib"),
        Peer("sd-event", "SDEvent"),
        Peer("nio", "NIO"),
        Peer("nio, task executor", "NIO", form: "task executor"),
        Peer("dispatch", "Dispatch"),
        Peer("dispatch, leeway 1 ms", "Dispatch", form: "tolerance"),
        Peer("dispatch, after", "Dispatch", form: "after"),
        Peer("foundation", "Foundation"),
        Peer("foundation, perform", "Foundation", form: "perform"),
        Peer("epoll alone", "Guests", form: "epoll"),
        Peer("epoll, ours a guest", "Guests", form: "epoll,guest", host: "epoll alone"),
        Peer("libuv alone", "Guests", form: "libuv"),
        Peer("libuv, ours a guest", "Guests", form: "libuv,guest", host: "libuv alone"),
        Peer("glib alone", "Guests", form: "glib"),
        Peer("glib, ours a guest", "Guests", form: "glib,guest", host: "glib alone"),
        Peer("glib in ours", "Guests", form: "glib-in-ours", host: "glib alone"),
    ]

    /// The peers of a quick run.
    static let quick: Set<String> = [
        "ours", "ours, tolerance 1 ms", "floor", "floor, timerfd", "libev", "libevent", "libevent, precise", "libuv",
        "nio", "nio, task executor", "foundation", "epoll alone", "epoll, ours a guest", "libuv alone",
        "libuv, ours a guest", "glib alone", "glib, ours a guest", "glib in ours",
    ]

    /// Returns `true` if a form differs from the loop itself in this workload; other workloads are not measured.
    func differs(in workload: Workload) -> Bool {
        switch (program, form) {
        case ("RunLoopKit", "delayed call"): ["churn", "rearm", "fire"].contains(workload.kind)
        case ("RunLoopKit", "sleep of a task"): ["churn", "fire"].contains(workload.kind)
        case ("RunLoopKit", "tolerance"), ("Dispatch", "tolerance"): workload.kind == "periodic"
        case ("Floor", "timerfd"), ("Floor", "slack"): ["fire", "periodic", "idle"].contains(workload.kind)
        case ("Floor", "eventfd"): ["ping", "post"].contains(workload.kind)
        case ("Floor", "pool"): ["ping", "post"].contains(workload.kind)
        case ("Libevent", "common"): ["churn", "embed"].contains(workload.kind)
        case ("NIO", "task executor"): ["yield", "preferring", "actors-preferring"].contains(workload.kind)
        case ("Foundation", "perform"): ["ping", "post"].contains(workload.kind)
        default: (program == "Guests") == workload.kind.hasPrefix("guest")
        }
    }
}
