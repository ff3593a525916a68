public import Foundation

/// Returns the standard output of a command, and its status; a signal's number is above 128, as in a shell.
public func capture(
    _ command: [String], environment: [String: String]? = nil
) throws -> (output: String, status: Int32) {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = command
    process.environment = environment
    let pipe = Pipe()
    process.standardOutput = pipe
    process.standardError = FileHandle.nullDevice
    try process.run()
    let data = try pipe.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    let status = process.terminationStatus
    return (String(decoding: data, as: UTF8.self), process.terminationReason == .uncaughtSignal ? 128 + status : status)
}

/// The directory of this program and of the programs that it runs.
public var programs: URL {
    URL(fileURLWithPath: CommandLine.arguments[0]).resolvingSymlinksInPath().deletingLastPathComponent()
}
