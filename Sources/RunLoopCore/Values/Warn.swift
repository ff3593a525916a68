internal import Glibc

/// Writes `RunLoopKit: `, a text and the end of a line to standard error, unless its reader would block the thread.
func warn(_ text: String) {
    var ready = pollfd(fd: STDERR_FILENO, events: Int16(POLLOUT), revents: 0)
    guard Glibc.poll(&ready, 1, 0) == 1 else { return }
    let line = "RunLoopKit: \(text)\n"
    _ = write(STDERR_FILENO, line, line.utf8.count)
}
