// Counts the instructions, allocations, system calls and sleeps of the operations of `Costs`, and compares them with a
// file: `CompareCosts costs.json`; or records them there: `CompareCosts --record costs.json`.
//
// The program then does the same with the lines that a dependent compiles, and the size of the program `Smallest`.
//
// Counts come from callgrind, where the machine's load has no effect. There the clock is read with system calls, which
// are counted.

import Commands
import Foundation

/// The reason why nothing can be compared.
struct Failure: Error, CustomStringConvertible {
    let description: String
}

do {
    var arguments = CommandLine.arguments.dropFirst()
    let isRecording = arguments.first == "--record"
    if isRecording { arguments.removeFirst() }
    guard arguments.count == 1, let file = arguments.first else {
        throw Failure(description: "usage: CompareCosts [--record] <file>")
    }
    let isGood = try Comparison(file: URL(fileURLWithPath: file), isRecording: isRecording).run()
    exit(isGood ? 0 : 1)
} catch {
    FileHandle.standardError.write(Data("\(error)\n".utf8))
    exit(2)
}
