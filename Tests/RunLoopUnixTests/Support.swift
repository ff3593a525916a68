import CShims
import Glibc
import RunLoopCore
import RunLoopKit
import RunLoopUnix
import Synchronization
import Testing

/// Waits, giving up after a time that no test needs, until something is so.
func eventually(_ isSo: () -> Bool) -> Bool {
    let clock = ContinuousClock()
    let end = clock.now + .seconds(120)
    while !isSo() {
        guard clock.now < end else { return false }
        usleep(200)
    }
    return true
}

/// Who handles a signal: the number of the handler's address, 0 for the default, 1 for nobody.
func disposition(of signal: Signal) -> UInt {
    var action = sigaction()
    precondition(sigaction(signal.rawValue, nil, &action) == 0)
    return unsafeBitCast(action.__sigaction_handler.sa_handler, to: UInt.self)
}

/// Forks, by the C library's function of that name; Swift's Glibc module hides it, and these processes know what they do.
func forkProcess(_ function: String) -> Int32 {
    let symbol = dlsym(nil, function)
    precondition(symbol != nil, "the C library has no \(function)")
    return unsafeBitCast(symbol, to: (@convention(c) () -> Int32).self)()
}

/// Calls `body` in a child process, which ends right after it, and tells how: 0 if all was well.
func statusOfChild(by function: String = "fork", _ body: () -> Void) -> Int32 {
    let child = forkProcess(function)
    precondition(child >= 0, "no process (errno \(errno))")
    if child == 0 {
        alarm(20)
        body()
        _exit(0)
    }
    var status: Int32 = 0
    while waitpid(child, &status, 0) < 0 && errno == EINTR {}
    return status
}

/// The names in a directory.
func directoryEntries(_ path: String) -> [String] {
    guard let directory = opendir(path) else { return [] }
    defer { closedir(directory) }
    var names: [String] = []
    while let entry = readdir(directory) {
        names.append(
            withUnsafeBytes(of: entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) })
    }
    return names
}

/// Where a symbolic link leads.
func linkTarget(_ path: String) -> String? {
    var buffer = [UInt8](repeating: 0, count: 256)
    let count = readlink(path, &buffer, buffer.count)
    return count < 0 ? nil : String(decoding: buffer.prefix(count), as: UTF8.self)
}

/// What the descriptors of this process are open for.
func openFiles() -> [String] {
    directoryEntries("/proc/self/fd").compactMap { linkTarget("/proc/self/fd/\($0)") }
}
