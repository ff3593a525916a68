import Glibc

/// Forks by the C library's function of that name, which Swift's Glibc module hides; these processes may use it safely.
package func forkProcess(_ function: String = "fork") -> Int32 {
    let symbol = dlsym(nil, function)
    precondition(symbol != nil, "the C library has no \(function)")
    return unsafeBitCast(symbol, to: (@convention(c) () -> Int32).self)()
}

/// Calls `body` in a child process, which ends right after it, and returns its status: 0 if all was well.
package func statusOfChild(by function: String = "fork", _ body: () -> Void) -> Int32 {
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
