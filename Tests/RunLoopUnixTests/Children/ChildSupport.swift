import Glibc
import RunLoopCore
import RunLoopKit
import RunLoopUnix

/// Starts a child that runs a line of shell.
func shell(
    _ line: String, input: ChildProcess.Stream = .null, output: ChildProcess.Stream = .pipe,
    error: ChildProcess.Stream = .inherit
) throws -> ChildProcess {
    try .spawn(
        .path("/bin/sh"), arguments: ["-c", line], standardInput: input, standardOutput: output, standardError: error)
}

/// Reads a pipe to its end.
func text(of pipe: PipeEnd?) throws -> String {
    var bytes: [UInt8] = []
    let loop = RunLoop.current
    let source = DescriptorSource(fileDescriptor: pipe!.fileDescriptor, events: .readable) { source, _ in
        switch try? pipe!.read() {
        case .bytes(let more): bytes += more
        case .nothing: break
        case .end, nil: source.invalidate()
        }
    }
    try loop.add(source, forMode: "reading")
    precondition(loop.run(in: "reading", until: loop.now + .seconds(30)) == .finished, "the pipe has no end")
    return String(decoding: bytes, as: UTF8.self)
}

/// Waits for the end of a child, and returns its status.
func end(of child: ChildProcess) throws -> ChildProcess.ExitStatus {
    var result: ChildProcess.ExitStatus?
    let loop = RunLoop.current
    let ending: RunLoop.Mode = "ending"
    try loop.add(ChildSource(child) { result = $1 }, forMode: RunLoop.Modes(ending))
    precondition(loop.run(in: ending, until: loop.now + .seconds(30)) == .finished, "the child does not end")
    return result!
}

/// Returns `true` if a child of this process has ended and was not reaped.
func isZombie(_ pid: Int32) -> Bool {
    var info = siginfo_t()
    return waitid(P_PID, id_t(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info._sifields._sigchld.si_pid == pid
}

/// Returns `true` if a number belongs to a child of this process, running or not.
func isChild(_ pid: Int32) -> Bool {
    var info = siginfo_t()
    return waitid(P_PID, id_t(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0
}
