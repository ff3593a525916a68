import RunLoopConsole

/// Returns a snapshot of a process with three loops: one with a deadlock, one that is blocked, one with a leak.
func sampleSnapshot(number: Int = 1, loops: Int = 3) throws -> Console.Snapshot {
    func loop(_ name: String, _ state: String, _ rest: String) -> String {
        let lists = ["handlers", "lines", "due", "connections", "tasks"].filter { !rest.contains("\"\($0)\":[") }
        return """
            {"name":"\(name)","state":"\(state)","modes":["default"],"passes":12.5,"sleeps":11,"fires":4,"jobs":0,
            "lateness":{"count":0,"half":0,"most":0,"all":0},"counts":{"items":3,"connections":1,"tasks":2},
            \(lists.map { "\"\($0)\":[]" }.joined(separator: ","))\(rest)}
            """
    }
    let tasks = loop(
        "main", "asleep",
        """
        ,"age":0.01,"asleep":0.995,"computing":0.004,
        "tasks":[{"number":7,"name":"one","origin":"App/main.swift:3","activity":"awaits task \\"other\\" (App/main.swift:4)"},
        {"number":8,"name":"other","origin":"App/main.swift:4"}]
        """)
    let blocked = loop(
        "worker", "blocked",
        """
        ,"age":3.2,"asleep":0,"computing":0.001,
        "call":{"kind":"timer","name":"stuck","origin":"App/worker.swift:9","time":3.1,"isWaiting":true},
        "handlers":[{"kind":"timer","name":"quick","origin":"App/worker.swift:5","calls":9,"share":0.1,"longest":0.002},
        {"kind":"timer","name":"stuck","origin":"App/worker.swift:9","calls":1,"share":0.9,"longest":3.1}]
        """)
    let leaking = loop(
        "leaky", "busy",
        """
        ,"age":0.01,"asleep":0.5,"computing":0.5,
        "lines":[{"kind":"timer","name":"lost \\u001b[2J","origin":"App/leaky.swift:2","count":40,"growth":{"items":39,"time":0.8}},
        {"kind":"descriptor","origin":"App/leaky.swift:7","count":2}],
        "due":[{"kind":"timer","origin":"App/leaky.swift:1","time":0.25,"detail":"every 0.5 seconds"}],
        "connections":[{"descriptor":9,"name":"connection","origin":"App/leaky.swift:7","peer":"127.0.0.1:4711","received":1000,
        "sent":2000000,"unread":0,"unsent":17}]
        """)
    let all = [tasks, blocked, leaking].prefix(loops) + (3..<max(3, loops)).map { loop("loop \($0)", "asleep", "") }
    let json = """
        {"version":1,"number":\(number),"process":4711,"program":"daemon","loops":[\(all.joined(separator: ","))],
        "cycles":[[{"loop":"main","number":7,"name":"one","origin":"App/main.swift:3"},
        {"loop":"main","number":8,"name":"other","origin":"App/main.swift:4"}]]}
        """
    return try Console.Snapshot(json: Array(json.utf8))
}
