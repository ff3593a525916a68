// The minute in which a code cannot be sent again: a countdown with pause and resume.
//
// In a terminal, p pauses and resumes, r sends the code again once that is allowed, and q or Ctrl-C quits; with
// `--seconds 5` it takes five seconds. Without a terminal the countdown is paused at 20.5 s for 10 s, on virtual time.

import Glibc
import RunLoopKit
import RunLoopSimulation

func line(_ countdown: Countdown) -> String {
    switch countdown.remaining! {
    case 0: "Send the code again: press r"
    case let seconds: "Send the code again in \(seconds) s" + (countdown.isRunning ? "" : ", paused")
    }
}

/// Performs the command of a key.
///
/// - Returns: `true` if the key has a command.
func press(_ key: Character, _ countdown: Countdown) -> Bool {
    switch key {
    case "p" where countdown.isRunning:
        countdown.pause()
    case "p" where countdown.remaining != 0:
        countdown.resume()
    case "r" where countdown.remaining == 0:
        countdown.reset()
        countdown.resume()
    default:
        return false
    }
    return true
}

func runInTerminal(_ terminal: RawTerminal, seconds: Int) throws {
    let loop = RunLoop.current
    // Overwrites the present line.
    func show(_ countdown: Countdown) {
        print("\r\u{1B}[K" + line(countdown), terminator: "")
        fflush(nil)
    }
    let countdown = Countdown(from: seconds, pausing: .continuing, tick: show)
    // In the common modes, because the countdown is called in every mode: a key works wherever a second passes.
    let keys = DescriptorSource(fileDescriptor: STDIN_FILENO, events: .readable) { _, _ in
        switch terminal.readKey() {
        case "q", "\u{3}", nil: loop.stop()
        case let key?: if press(key, countdown) { show(countdown) }
        }
    }
    try loop.add(keys, forMode: .common)
    countdown.resume()
    loop.run(in: .default)
    keys.invalidate()
    print()
}

func runScript(seconds: Int) {
    withSimulation { simulation in
        let loop = simulation.loop
        let start = loop.now
        func show(_ countdown: Countdown) {
            print("\(loop.now - start): \(line(countdown))")
        }
        let countdown = Countdown(from: seconds, pausing: .continuing, tick: show)
        for moment in [20.5, 30.5] {
            loop.perform(at: start + .seconds(moment)) { if press("p", countdown) { show(countdown) } }
        }
        countdown.resume()
        // Nothing else keeps the countdown after the last call.
        withExtendedLifetime(countdown) { _ = simulation.runUntilIdle() }
    }
}

let option = CommandLine.arguments.firstIndex(of: "--seconds").map { CommandLine.arguments.dropFirst($0 + 1) }
guard let seconds = option == nil ? 60 : option?.first.flatMap({ Int($0) }), seconds >= 0 else {
    print("usage: ResendCode [--seconds N]")
    exit(2)
}
if let terminal = RawTerminal() {
    defer { terminal.restore() }
    try runInTerminal(terminal, seconds: seconds)
} else {
    runScript(seconds: seconds)
}
