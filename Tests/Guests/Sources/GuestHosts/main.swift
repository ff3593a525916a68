// Random programs of timers, descriptors, posts, tasks and nested runs, alone and as a guest of another library's loop, on
// the main thread; idle guests; the main actor.
//
//   GuestHosts libuv|glib|foundation [SEEDS]
import Glibc
import RunLoopKit

let hosts: [String: any Host.Type] = [
    "libuv": LibuvHost.self, "glib": GLibHost.self, "foundation": FoundationHost.self,
]

struct Hosted: Way {
    let host: any Host
    let loop: RunLoop
    let depth = Box(0)

    func run(in mode: RunLoop.Mode) {
        depth.value += 1
        defer { depth.value -= 1 }
        // libuv cannot be run in one of its callbacks, and Foundation does not serve the main queue in a block of it.
        if depth.value > 1 && !(host is GLibHost) { _ = loop.run(in: mode) } else { _ = host.run(in: mode) }
    }
}

func expect(_ isSo: Bool, _ what: @autoclosure () -> String) {
    guard !isSo else { return }
    print("FAILED \(what())")
    exit(1)
}

guard CommandLine.arguments.count > 1, let kind = hosts[CommandLine.arguments[1]] else {
    print("GuestHosts libuv|glib|foundation [SEEDS]")
    exit(2)
}
let seeds = CommandLine.arguments.count > 2 ? UInt64(CommandLine.arguments[2])! : 50
let loop = RunLoop.current
// A hang means a lost wake-up.
alarm(120)

var alone: [[String]] = []
for seed in 1...seeds {
    let program = Program(seed, loop, Alone(loop: loop))
    program.run()
    alone.append(program.calls)
}

let host = try kind.init(loop.makeGuest())
var calls = 0
for seed in 1...seeds {
    let program = Program(seed, loop, Hosted(host: host, loop: loop))
    program.run()
    expect(program.early == 0, "seed \(seed): \(program.early) calls were early")
    let expected = alone[Int(seed) - 1]
    expect(program.calls == expected, "seed \(seed): \(program.calls) differ from those alone, \(expected)")
    calls += program.log.count
}
print("passed \(host.name): \(seeds) programs, \(calls) calls, as often as alone and none early")

// An idle guest causes no wake-ups, and each date causes one.
let before = loop.statistics
let start = loop.now
for number in 1...50 { loop.perform(at: start + .milliseconds(2 * number)) {} }
_ = host.run(in: .default)
let passes = loop.statistics.passes - before.passes
expect(loop.statistics.fires - before.fires == 50, "dates were lost")
expect(passes <= 51, "\(passes) passes for 50 dates")
print("passed \(host.name): \(passes) passes for 50 dates")

// The main actor, and tasks of the loop that call it.
if !(host is FoundationHost) { loop.serveMainActor() }
@MainActor final class Count {
    var value = 0
    func add() -> Int {
        value += 1
        return value
    }
}

/// A task of the loop.
func ask(_ count: Count, on loop: RunLoop) {
    let (clock, remote) = (loop.clock, loop.remote)
    loop.task {
        var sum = 0
        for _ in 0..<100 {
            try await clock.sleep(for: .microseconds(200))
            sum += await count.add()
        }
        expect(sum == 5050, "the main actor counted \(sum)")
        remote.stop()
    }
}
ask(Count(), on: loop)
expect(host.run(in: .default) == .stopped, "the main actor did not go on")
print("passed \(host.name): the main actor and tasks go on")
