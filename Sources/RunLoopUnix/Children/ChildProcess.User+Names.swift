internal import Glibc

extension ChildProcess.User {
    /// Creates a user from the system's database, with all the user's groups; on a simulated host, from `/etc/passwd`
    /// and `/etc/group` on its disk. Blocks while a database on another machine answers, so call it before the loop
    /// runs. Any thread.
    ///
    /// - Throws: ``SystemError`` with `ENOENT` if there is no such user.
    public init(named name: String) throws(SystemError) {
        guard !name.utf8.contains(0) else {
            throw SystemError("find a user whose name has a zero byte", errno: EINVAL)
        }
        self = try WorldSystem.current.user(named: name)
    }
}
