// Rebuild on save: runs a command once the files of a directory have been quiet for 100 ms.
//
//     FileWatcher Sources swift build
//
// Without arguments it demonstrates itself: a timer saves files into a temporary directory, and `echo` stands for the
// build.

@preconcurrency import Glibc  // for `environ`, which the C library declares as a variable
import RunLoopKit
import RunLoopUnix

/// Starts a program and waits for its end, blocking the loop as a rebuild requires: events of files saved meanwhile
/// wait in the kernel's queue, and cause the next one.
func run(_ command: [String]) -> Int32 {
    let arguments = command.map { strdup($0) } + [nil]
    defer { for argument in arguments { free(argument) } }
    var process = pid_t()
    let status = posix_spawnp(&process, command[0], nil, nil, arguments, environ)
    guard status == 0 else { return status }
    var result: Int32 = 0
    while waitpid(process, &result, 0) < 0, errno == EINTR {}
    return result
}

/// Returns a name as a terminal may show it: a file's name can contain any character, including ones that move the
/// cursor.
func shown(_ name: String) -> String {
    name.unicodeScalars.map { $0.properties.generalCategory == .control ? $0.escaped(asASCII: true) : String($0) }
        .joined()
}

/// Calls `rebuild` when `directory` has been quiet for a while after a file in it was saved.
func watch(_ directory: String, on loop: RunLoop, rebuild: @escaping ([String]) -> Void) throws -> FileWatcher {
    var saved: Set<String> = []
    // Parked until a file is saved; each further save moves its date.
    let quiet = Timer(fire: .distantFuture, interval: .seconds(1), repeats: true) { timer in
        timer.fireDate = .distantFuture
        let names = saved.sorted()
        saved = []
        rebuild(names)
    }
    loop.add(quiet, forMode: .common)
    let watcher = try FileWatcher { _, events in
        for event in events {
            if event.kind == .overflow { print("too much was saved at once; building all") }
            if event.kind == .ignored { print("\(shown(directory)) has gone") }
            saved.insert(event.name ?? "*")
        }
        quiet.fireDate = loop.now + .milliseconds(100)
    }
    try watcher.watch(directory, for: [.closedAfterWriting, .moved, .deleted])
    try loop.add(watcher, forMode: .common)
    return watcher
}

/// Demonstrates two bursts of saves in a temporary directory, each followed by one build.
func demonstrate(on loop: RunLoop) throws {
    var template = Array("/tmp/FileWatcher.XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw SystemError("make a temporary directory", errno: errno) }
    let directory = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    let names = ["main.swift", "Parser.swift", "Lexer.swift"]
    var builds = 0
    let watcher = try watch(directory, on: loop) { saved in
        builds += 1
        print("build \(builds): saved", saved.map(shown).joined(separator: ", "))
        fflush(nil)
        _ = run(["echo", "would build now"])
        if builds == 2 { loop.stop() }
    }
    for (count, delay) in [(3, 100), (2, 500)] {
        for (place, name) in names.prefix(count).enumerated() {
            loop.perform(afterDelay: .milliseconds(delay + 20 * place)) { close(creat("\(directory)/\(name)", 0o644)) }
        }
    }
    loop.run(in: .default, until: loop.now + .seconds(2))
    watcher.invalidate()
    for name in names { unlink("\(directory)/\(name)") }
    rmdir(directory)
}

let arguments = CommandLine.arguments.dropFirst()
do {
    if arguments.count < 2 {
        try demonstrate(on: .current)
    } else {
        let command = Array(arguments.dropFirst())
        _ = try watch(arguments.first!, on: .current) { saved in
            print("saved", saved.map(shown).joined(separator: ", "))
            fflush(nil)
            let status = run(command)
            print(status == 0 ? "done" : "failed (\(status))")
        }
        RunLoop.current.run()
    }
} catch {
    print(error)
    exit(1)
}
