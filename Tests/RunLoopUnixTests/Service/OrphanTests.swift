import Glibc
import RunLoopKit
import TestSupport
import Testing

@testable import RunLoopUnix

@Suite("Orphans", .timeLimit(.minutes(5)))
struct OrphanTests {
    /// Makes this process receive the orphans among its descendants, as process 1 does.
    private static func becomeSubreaper() {
        typealias Call = @convention(c) (Int32, Int, Int, Int, Int) -> Int32
        let call = unsafeBitCast(dlsym(nil, "prctl"), to: Call.self)
        precondition(call(36, 1, 0, 0, 0) == 0, "PR_SET_CHILD_SUBREAPER")
    }

    /// The number of children, running or ended.
    private static var children: Int {
        let text = RealSystem.shared.contentsOfFile("/proc/self/task/\(getpid())/children", upTo: 1 << 20) ?? []
        return text.count { $0 == UInt8(ascii: " ") }
    }

    /// Starts a child that leaves some orphans, and ends with a status.
    private static func makeChild(orphans: Int, status: Int) throws -> ChildProcess {
        let orphan = "(sleep 0.0$((RANDOM % 5)) &) ; "
        return try shell(String(repeating: orphan, count: orphans) + "exit \(status)", output: .null)
    }

    @Test("a daemon reaps orphans, and its own children keep their statuses")
    func reaped() async {
        await #expect(processExitsWith: .success) {
            onThread {
                Self.becomeSubreaper()
                let loop = RunLoop.current
                let daemon = Daemon(loop: loop, manager: try! ServiceManager(environment: [:]))
                try! daemon.reapOrphans()
                // An ended child of the process's own, before all orphans, which is not reaped until the end.
                let first = try! shell("exit 7", output: .null)
                var statuses: [Int: ChildProcess.ExitStatus] = [:]
                for number in 0..<40 {
                    let child = try! Self.makeChild(orphans: number % 4, status: number)
                    try! loop.add(ChildSource(child) { statuses[number] = $1 }, forMode: .default)
                }
                let end = loop.now + .seconds(120)
                func runUntil(_ isSo: () -> Bool) {
                    while !isSo(), loop.now < end { loop.run(in: .default, until: loop.now + .milliseconds(10)) }
                }
                // One unreaped ended child is left. The list may miss one while others end.
                runUntil { statuses.count == 40 && Self.children <= 1 }
                for number in 0..<40 { precondition(statuses[number] == .exited(Int32(number)), "\(statuses)") }
                precondition(try! RunLoopUnixTests.end(of: first) == .exited(7))
                runUntil { Self.children == 0 }
                precondition(Self.children == 0)
            }
        }
    }

    @Test("children that other threads start meanwhile are not taken for orphans")
    func startedMeanwhile() async {
        await #expect(processExitsWith: .success) {
            Self.becomeSubreaper()
            let hasEnded = Flag()
            let reaper = PlainThread {
                while !hasEnded.isSet { RealSystem.shared.reapOrphans() }
            }
            let starters = (0..<3).map { _ in
                PlainThread {
                    for number in 0..<100 {
                        let child = try! Self.makeChild(orphans: 1, status: number)
                        precondition(try! RunLoopUnixTests.end(of: child) == .exited(Int32(number)))
                    }
                }
            }
            for starter in starters { starter.join() }
            hasEnded.set()
            reaper.join()
            precondition(
                eventually("no orphan is left") {
                    RealSystem.shared.reapOrphans()
                    return Self.children == 0
                })
        }
    }
}
