internal import Glibc

extension ChildProcess.User {
    /// A user of the system's database, with all the user's groups; on a simulated host, of the `/etc/passwd` and
    /// `/etc/group` of its disk. If the database is on another machine, this blocks until it answers: call it before
    /// the loop runs. Any thread.
    ///
    /// - Throws: ``SystemError`` with `ENOENT` if there is no such user.
    public init(named name: String) throws(SystemError) {
        guard !name.utf8.contains(0) else {
            throw SystemError("find a user whose name has a zero byte", errno: EINVAL)
        }
        self = try WorldSystem.current.user(named: name)
    }
}
