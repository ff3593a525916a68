// Keeps children alive, with longer and longer pauses for ones that keep ending, and stops them in the reverse order of
// their start: `Supervisor "command" "command" …`. Without arguments, it demonstrates itself with short-lived shells.

import RunLoopKit
import RunLoopUnix

/// A child that is started again whenever it has ended.
final class Ward {
    let command: String
    private let loop: RunLoop
    private var child: ChildProcess?
    private var pause: Duration
    private var restart: Timer?
    private var whenStopped: (() -> Void)?
    private(set) var starts = 0

    private static let shortestPause = Duration.milliseconds(100)
    private static let longestPause = Duration.seconds(10)
    /// The life after which a child counts as healthy, and is restarted without delay.
    private static let healthyLife = Duration.seconds(5)

    init(_ command: String, on loop: RunLoop) {
        self.command = command
        self.loop = loop
        pause = Ward.shortestPause
    }

    func start() {
        starts += 1
        let begin = loop.now
        do {
            let child = try ChildProcess.spawn(.path("/bin/sh"), arguments: ["-c", command], group: .newGroup)
            let ending = ChildSource(child) { [unowned self] _, status in
                self.child = nil
                print("[\(command)] \(status)")
                if let whenStopped { return whenStopped() }
                if loop.now - begin >= Ward.healthyLife { pause = Ward.shortestPause }
                startLater()
            }
            try loop.add(ending, forMode: .common)
            self.child = child
        } catch {
            print("[\(command)] \(error)")
            startLater()
        }
    }

    private func startLater() {
        let timer = Timer(fire: loop.now + pause, interval: .zero, repeats: false) { [unowned self] _ in start() }
        loop.add(timer, forMode: .common)
        restart = timer
        pause = min(pause * 2, Ward.longestPause)
    }

    /// Asks the child and its descendants to end, kills them after a second, and then calls `done`.
    func stop(_ done: @escaping () -> Void) {
        restart?.invalidate()
        guard let child else { return done() }
        whenStopped = done
        _ = try? child.stop(within: .seconds(1), on: loop)
    }
}

/// Stops the last ward, then the ones before it.
func stop(_ wards: [Ward], _ done: @escaping () -> Void) {
    guard let last = wards.last else { return done() }
    print("stopping [\(last.command)], started \(last.starts) time(s)")
    last.stop { stop(wards.dropLast(), done) }
}

let loop = RunLoop.current
let commands = Array(CommandLine.arguments.dropFirst())
let wards = (commands.isEmpty ? ["exec sleep 100", "exit 3"] : commands).map { Ward($0, on: loop) }

let daemon = Daemon(loop: loop, manager: try ServiceManager())
try daemon.handleSignals()
// One after another, the last first.
daemon.onStop(.drain, name: "children") { done in stop(wards) { done() } }
for ward in wards { ward.start() }
if commands.isEmpty { loop.asyncAfter(.milliseconds(900)) { daemon.stop() } }
let status = daemon.run()
print("all have ended, status \(status)")
