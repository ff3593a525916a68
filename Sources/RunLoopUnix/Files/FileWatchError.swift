/// A failure to watch a file.
public enum FileWatchError: Error, Equatable, Sendable, CustomStringConvertible {
    /// Nothing exists at the path.
    case noSuchFile(String)
    /// The process may not read the file, or may not search a directory on the path.
    case notPermitted(String)
    /// The watcher already watches the same file, under this or another path.
    case alreadyWatched(String)
    /// The user has no watches left for this path.
    case tooManyWatches(String)
    /// The user has no watchers left, or the process has no descriptors left.
    case tooManyWatchers
    /// Another error of the system.
    case system(SystemError)

    public var description: String {
        switch self {
        case .noSuchFile(let path):
            "\(path) cannot be watched: there is no such file; watch its directory to be notified when it is made"
        case .notPermitted(let path):
            "\(path) cannot be watched: this process may not read it"
        case .alreadyWatched(let path):
            "\(path) is watched already by this watcher, under this or another path; remove that watch first"
        case .tooManyWatches(let path):
            "\(path) cannot be watched: the user has too many watches; raise the sysctl fs.inotify.max_user_watches"
        case .tooManyWatchers:
            "no further watcher: raise the sysctl fs.inotify.max_user_instances, or the process's limit of open files"
        case .system(let error):
            error.description
        }
    }
}
