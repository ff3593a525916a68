public import Foundation

/// The standard output of a command, and how it ended; a signal's number is above 128, as in a shell.
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

/// Where this program and those that it runs are.
public var programs: URL {
    URL(fileURLWithPath: CommandLine.arguments[0]).resolvingSymlinksInPath().deletingLastPathComponent()
}
