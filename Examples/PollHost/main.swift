// A run loop in a foreign loop: here one around `poll`, as in an old program, with a descriptor of its own.
//
// The host waits for its descriptor and for the guest, whose clocks tick in modes. While the "user drags", from the
// first byte on the host's descriptor to the second, the host runs the guest in tracking mode: the clock in the default
// mode stops, and then reports its missed ticks. The demonstration takes 0.6 s.

import Glibc
import RunLoopKit

/// The host, which knows descriptors, and calls a function when one is readable.
struct PollLoop {
    var handlers: [(descriptor: Int32, call: () -> Void)] = []
    var beforeWaiting: () -> Void = {}

    func turn() {
        beforeWaiting()
        var ready = handlers.map { pollfd(fd: $0.descriptor, events: Int16(POLLIN), revents: 0) }
        poll(&ready, nfds_t(ready.count), -1)
        for (index, found) in ready.enumerated() where found.revents != 0 { handlers[index].call() }
    }
}

func main(_ loop: RunLoop) throws {
    let start = loop.now
    func say(_ what: String) {
        print("\(Int((loop.now - start) / .milliseconds(1))) ms\t\(what)")
    }

    // The work of the guest: a run loop as always.
    loop.addCommonMode(.tracking)
    for (name, modes) in [("default only", RunLoop.Modes.default), ("common", .common)] {
        let timer = Timer(fire: start + .milliseconds(50), interval: .milliseconds(100), repeats: true) { timer in
            say("\(name) ticks" + (timer.missedFires > 0 ? ", and has missed \(timer.missedFires)" : ""))
        }
        loop.add(timer, forMode: modes)
    }
    loop.task { [clock = loop.clock] in
        try await clock.sleep(for: .milliseconds(600))
        print("a task of the loop ends it")
        RunLoop.Remote.main.stop()
    }

    // The user, on another thread, who presses and releases.
    var ends: [Int32] = [0, 0]
    guard pipe(&ends) == 0 else { fatalError("no pipe") }
    let (input, user) = (ends[0], ends[1])
    let thread = LoopThread(name: "user") { loop in
        for milliseconds in [170, 430] {
            loop.perform(afterDelay: .milliseconds(milliseconds)) { _ = write(user, "!", 1) }
        }
    }

    // The host with both.
    let guest = loop.makeGuest()
    var mode = RunLoop.Mode.default
    var result = RunLoop.RunResult.timedOut
    var host = PollLoop()
    host.handlers = [
        (try guest.fileDescriptor, { result = guest.run(in: mode) }),
        (
            input,
            {
                var byte: UInt8 = 0
                guard read(input, &byte, 1) == 1 else { return }
                mode = mode == .default ? .tracking : .default
                say("the host is in the \(mode.name) mode")
            }
        ),
    ]
    host.beforeWaiting = { guest.prepare(in: mode) }
    while result == .timedOut { host.turn() }
    thread.join()
}

try main(.main)
