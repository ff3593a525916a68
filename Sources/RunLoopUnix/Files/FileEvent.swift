internal import Glibc

/// Something that happened to a watched file or in a watched directory.
public struct FileEvent: Sendable, Hashable {
    /// What happened.
    public enum Kind: Sendable, Hashable {
        /// A file or directory was made in the watched directory.
        case created
        /// A file's content or length changed. There is one for every write; most programs want ``closedAfterWriting``.
        case modified
        /// A file that was open for writing was closed: its writer is done with it.
        case closedAfterWriting
        /// Permissions, owner, times or the number of links changed.
        case attributesChanged
        /// A file left the watched directory, by a rename; its new place has the same ``FileEvent/cookie``.
        case movedFrom
        /// A file came into the watched directory, by a rename.
        case movedTo
        /// A file was deleted from the watched directory.
        case deleted
        /// The watched file or directory was itself deleted; ``ignored`` follows.
        case deletedSelf
        /// The watched file or directory was itself moved. It is watched on, under the path that it had.
        case movedSelf
        /// The file system of the watched file was unmounted; ``ignored`` follows.
        case unmounted
        /// The watch has ended without having been taken back: nothing more comes from it.
        case ignored
        /// The system's queue was full and events were lost, of any watch: look at the files anew. The queue's length
        /// is the sysctl `fs.inotify.max_queued_events`.
        case overflow
    }

    /// A set of kinds: what a watch reports. ``Kind/unmounted``, ``Kind/ignored`` and ``Kind/overflow`` are always
    /// reported and not part of it.
    public struct Kinds: OptionSet, Sendable, Hashable {
        /// The bits of `inotify_add_watch`.
        public let rawValue: UInt32

        /// The kinds of the bits.
        public init(rawValue: UInt32) {
            self.rawValue = rawValue
        }

        private init(_ bit: Int32) {
            rawValue = UInt32(bitPattern: bit)
        }

        /// ``FileEvent/Kind/created``.
        public static let created = Kinds(IN_CREATE)
        /// ``FileEvent/Kind/modified``.
        public static let modified = Kinds(IN_MODIFY)
        /// ``FileEvent/Kind/closedAfterWriting``.
        public static let closedAfterWriting = Kinds(IN_CLOSE_WRITE)
        /// ``FileEvent/Kind/attributesChanged``.
        public static let attributesChanged = Kinds(IN_ATTRIB)
        /// ``FileEvent/Kind/movedFrom`` and ``FileEvent/Kind/movedTo``.
        public static let moved = Kinds(IN_MOVED_FROM | IN_MOVED_TO)
        /// ``FileEvent/Kind/deleted``.
        public static let deleted = Kinds(IN_DELETE)
        /// ``FileEvent/Kind/deletedSelf`` and ``FileEvent/Kind/movedSelf``.
        public static let ownFate = Kinds(IN_DELETE_SELF | IN_MOVE_SELF)
        /// All of them.
        public static let all: Kinds = [
            .created, .modified, .closedAfterWriting, .attributesChanged, .moved, .deleted, .ownFate,
        ]
    }

    /// What happened.
    public let kind: Kind

    /// The watch that reports; `nil` for an overflow, which concerns all.
    public let watch: FileWatch?

    /// The name of the file within the watched directory; `nil` if it happened to the watched file itself.
    ///
    /// Names are bytes and need not be UTF-8: what is not becomes U+FFFD here, and is in ``nameBytes`` as it was.
    public var name: String? { nameBytes.isEmpty ? nil : String(decoding: nameBytes, as: UTF8.self) }

    /// The bytes of the name; empty if there is none.
    public let nameBytes: [UInt8]

    /// Whether it happened to a directory.
    public let isDirectory: Bool

    /// Names a rename: the same number in the ``Kind/movedFrom`` and the ``Kind/movedTo`` of one file; zero in events
    /// of other kinds.
    ///
    /// The two come one right after the other, though not always in the same batch. One comes alone if the other
    /// directory is not watched.
    public let cookie: UInt32

    /// The path: that of the watch as it was given, and the name. `nil` for an overflow.
    public var path: String? {
        guard let watch else { return nil }
        guard let name else { return watch.path }
        return watch.path.hasSuffix("/") ? watch.path + name : "\(watch.path)/\(name)"
    }
}

extension FileEvent.Kinds: CustomStringConvertible {
    /// For example `created, moved`; `none` for an empty set.
    public var description: String {
        let names: [(Self, String)] = [
            (.created, "created"), (.modified, "modified"), (.closedAfterWriting, "closedAfterWriting"),
            (.attributesChanged, "attributesChanged"), (.moved, "moved"), (.deleted, "deleted"),
            (.ownFate, "ownFate"),
        ]
        return isEmpty ? "none" : names.filter { contains($0.0) }.map(\.1).joined(separator: ", ")
    }
}

extension FileEvent: CustomStringConvertible {
    /// For example `movedTo /tmp/new.txt (7)`.
    public var description: String {
        "\(kind)\(path.map { " \($0)" } ?? "")\(isDirectory ? "/" : "")\(cookie == 0 ? "" : " (\(cookie))")"
    }
}

/// One watched path of a ``FileWatcher``.
public struct FileWatch: Sendable, Hashable {
    /// The path as it was given.
    public let path: String
    /// The system's number of the watch. It is not used again soon.
    let number: Int32
}
