internal import RunLoopUnix

/// The owner of a file or a directory, and the uses that its permissions allow, as on Linux.
struct Ownership {
    var owner: UInt32
    var group: UInt32
    /// The lowest twelve bits of the mode.
    var permissions: UInt32

    /// - Parameter user: the owner.
    init(_ user: ChildProcess.User, _ permissions: UInt32) {
        (owner, group, self.permissions) = (user.identifier, user.group, permissions)
    }

    /// The uses of a file or a directory, with the bits of the permissions for others.
    struct Use: OptionSet {
        let rawValue: UInt32

        static let search = Use(rawValue: 1)
        static let write = Use(rawValue: 2)
        static let read = Use(rawValue: 4)
        /// Making, renaming or removing a name in a directory.
        static let changeNames: Use = [.search, .write]
    }

    func allows(_ use: Use, to user: ChildProcess.User) -> Bool {
        if user.isRoot { return true }
        let allowed = owner == user.identifier ? permissions >> 6 : user.isIn(group) ? permissions >> 3 : permissions
        return use.isSubset(of: Use(rawValue: allowed))
    }

    /// Returns `true` if the user may change the permissions.
    func belongs(to user: ChildProcess.User) -> Bool { user.isRoot || owner == user.identifier }

    /// `true` if only the owner of a name may rename or remove it in a directory with these permissions.
    var isSticky: Bool { permissions & 0o1000 != 0 }
}

extension ChildProcess.User {
    static let root = ChildProcess.User(0, group: 0)

    var isRoot: Bool { identifier == 0 }
    func isIn(_ number: UInt32) -> Bool { group == number || supplementaryGroups.contains(number) }
}
