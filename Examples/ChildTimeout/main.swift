// Asks a child that does not end by itself to end, then kills it; reads the output of another line by line.

import RunLoopKit
import RunLoopUnix

let loop = RunLoop.current

// A shell that ignores SIGTERM, in a process group of its own.
let stubborn = try ChildProcess.spawn(
    .path("/bin/sh"), arguments: ["-c", "trap '' TERM; while :; do sleep 0.05; done"], group: .newGroup)
print("the first child runs")

let timeout = Timer.scheduledTimer(withTimeInterval: .milliseconds(300), repeats: false) { _ in
    print("the first child is asked to end")
    do { try stubborn.stop(within: .milliseconds(300), on: loop) } catch { print(error) }
}
let ending = ChildSource(stubborn) { _, status in
    print("the first child \(status)")
    timeout.invalidate()
}
try loop.add(ending, forMode: .default)
loop.run(in: .default)  // until the child has ended: then nothing is left in the loop

// Lines arrive as they are written. An incomplete line waits until the rest of it has been read.
let talker = try ChildProcess.spawn(
    .path("/bin/sh"), arguments: ["-c", "for n in 1 2 3; do printf 'line '; sleep 0.1; echo $n; done"],
    standardOutput: .pipe)
let output = talker.standardOutput!
var unfinished: [UInt8] = []

let reading = DescriptorSource(fileDescriptor: output.fileDescriptor, events: .readable) { source, _ in
    switch try? output.read() {
    case .bytes(let bytes):
        unfinished += bytes
        while let end = unfinished.firstIndex(of: UInt8(ascii: "\n")) {
            print("the second child says: \(String(decoding: unfinished[..<end], as: UTF8.self))")
            unfinished.removeSubrange(...end)
        }
    case .nothing:
        break
    case .end, nil:
        source.invalidate()
        output.close()
    }
}
try loop.add(reading, forMode: .default)
try loop.add(ChildSource(talker) { _, status in print("the second child \(status)") }, forMode: .default)
loop.run(in: .default)
