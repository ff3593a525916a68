import Glibc
import RunLoopKit
import RunLoopUnix
import Testing

/// Returns the path of a program of this package, which lies beside the tests' own.
func pathOfProgram(_ name: String) -> String {
    var buffer = [UInt8](repeating: 0, count: 4096)
    let count = readlink("/proc/self/exe", &buffer, buffer.count)
    let own = String(decoding: buffer.prefix(max(0, count)), as: UTF8.self)
    return own[..<(own.lastIndex(of: "/") ?? own.startIndex)] + "/\(name)"
}

/// Returns the number of operations of a test: the value of the environment variable, or the usual one.
func amount(of variable: String, usually usual: Int) -> Int {
    getenv(variable).flatMap { Int(String(cString: $0)) } ?? usual
}

/// Runs a program to its end.
///
/// - Returns: the program's standard output and standard error, and the reason if it failed.
func output(of program: String, _ arguments: [String]) throws -> (text: String, failure: String?) {
    let directory = TemporaryDirectory()
    let file = open(directory["output"], O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
    defer { close(file) }
    let child = try ChildProcess.spawn(
        .named(program), arguments: arguments, standardInput: .null, standardOutput: .descriptor(file),
        standardError: .descriptor(file))
    let status = try wait(for: child)
    let text = String(decoding: directory.contents(of: "output") ?? [], as: UTF8.self)
    return (text, status == .exited(0) ? nil : "\(program) \(status): \(text.suffix(500))")
}

/// Waits until a child has ended, on the calling thread's loop.
func wait(for child: ChildProcess) throws -> ChildProcess.ExitStatus {
    // A mode of its own: other tests of the thread may have left something in the default mode.
    let (loop, mode) = (RunLoop.current, RunLoop.Mode("waiting for a child"))
    var status: ChildProcess.ExitStatus?
    try loop.add(ChildSource(child) { status = $1 }, forMode: RunLoop.Modes(mode))
    loop.run(in: mode)
    return try #require(status)
}
