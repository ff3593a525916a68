@testable import Scenarios

/// Scenarios of one thread and events as the player prints them.
enum OneThread {
    static func fire(
        _ name: String, _ t: Int64, due: Int64? = nil, count: Int, mode: String = "default", missed: Int64 = 0,
        manual: Bool = false
    ) -> ScenarioEvent {
        ScenarioEvent(
            t: t, .fire(name: name, count: count, mode: mode, due: due ?? t, missed: missed, manual: manual))
    }

    private static let second: Int64 = 1_000_000_000

    static let x5 = Scenario(
        duration: 13 * second,
        timers: [Scenario.TimerEntry(name: "T", first: 2 * second, interval: 2 * second, repeats: true)],
        runs: [Scenario.RunEntry(mode: "tracking", from: 5_085_000_000, until: 9_596_000_000)])

    static let x5Events = [
        fire("T", 2 * second, count: 1), fire("T", 4 * second, count: 2),
        ScenarioEvent(t: 5_085_000_000, .runBegin(mode: "tracking")),
        ScenarioEvent(t: 9_596_000_000, .runEnd(mode: "tracking")),
        fire("T", 9_596_000_000, due: 6 * second, count: 3, missed: 1), fire("T", 10 * second, count: 4),
        fire("T", 12 * second, count: 5), ScenarioEvent(t: 13 * second, .end),
    ]

    static let crowded = Scenario(
        duration: 12 * second, commonModes: ["tracking"],
        timers: [
            Scenario.TimerEntry(
                name: "<T> & \"company\" of a long name", first: second, interval: 2 * second, repeats: true,
                busy: second / 2),
            Scenario.TimerEntry(name: "U", first: 4 * second),
            Scenario.TimerEntry(name: "once", first: 3 * second, target: Scenario.Target(name: "owner", hold: .weak)),
        ])

    static let crowdedEvents = [
        fire("<T> & \"company\" of a long name", second, count: 1), fire("once", 3 * second, count: 1),
        ScenarioEvent(t: 3 * second, .deinit(name: "owner")), ScenarioEvent(t: 3 * second, .invalidated(name: "once")),
        fire("U", 3_500_000_000, due: 4 * second, count: 1, manual: true),
        ScenarioEvent(t: 3_500_000_000, .invalidated(name: "U")),
        ScenarioEvent(t: 4 * second, .runBegin(mode: "tracking")),
        ScenarioEvent(t: 5_500_000_000, .runBegin(mode: "modal")),
        ScenarioEvent(t: 7 * second, .runEnd(mode: "modal")),
        ScenarioEvent(t: 8 * second, .runEnd(mode: "tracking")),
        ScenarioEvent(t: 9 * second, .busyBegin), ScenarioEvent(t: 11 * second, .busyEnd),
        ScenarioEvent(t: 12 * second, .end),
    ]
}

/// A scenario of three threads and events as the player prints them.
enum Threads {
    static let second: Int64 = 1_000_000_000

    static func delivery(
        _ name: String, _ t: Int64, due: Int64, count: Int, mode: String? = "default", data: Int64 = 1,
        on thread: String = "main"
    ) -> ScenarioEvent {
        ScenarioEvent(t: t, .delivery(name: name, count: count, mode: mode, due: due, data: data), thread: thread)
    }

    static let scenario = Scenario(
        duration: 8 * second,
        sources: [
            Scenario.SourceEntry(name: "S", start: 2 * second, interval: 2 * second),
            Scenario.SourceEntry(name: "B", start: 2 * second, interval: 2 * second, queue: .background, busy: second),
        ],
        links: [Scenario.LinkEntry(name: "L", rate: 50, preferred: 25)],
        countdowns: [Scenario.CountdownEntry(name: "C", from: 3)],
        busy: [Scenario.BusyEntry(at: 3 * second, duration: 4 * second)])

    static let events = [
        delivery("S", 2 * second, due: 2 * second, count: 1),
        delivery("B", 2 * second, due: 2 * second, count: 1, mode: nil, on: "background-1"),
        frame(2_960_000_000, count: 1, dropped: 0),
        ScenarioEvent(t: 3 * second, .busyBegin, thread: "main"),
        delivery("B", 4 * second, due: 4 * second, count: 2, mode: nil, on: "background-2"),
        ScenarioEvent(t: 4_500_000_000, .cancelled(name: "B"), thread: "background-2"),
        ScenarioEvent(t: 7 * second, .busyEnd, thread: "main"),
        delivery("S", 7 * second, due: 4 * second, count: 2, data: 2), frame(7_020_000_000, count: 2, dropped: 101),
        ScenarioEvent(t: 7_020_000_000, .reading(name: "L", text: "2 FPS"), thread: "main"),
        ScenarioEvent(t: 7_500_000_000, .tick(name: "C", count: 1, mode: "default", remaining: 3), thread: "main"),
        ScenarioEvent(t: 8 * second, .end, thread: "main"),
    ]

    private static func frame(_ t: Int64, count: Int, dropped: Int64) -> ScenarioEvent {
        ScenarioEvent(
            t: t, .frame(name: "L", count: count, mode: "default", timestamp: t, dropped: dropped), thread: "main")
    }
}
