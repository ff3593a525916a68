internal import Glibc

/// An event of a watched file or directory.
public struct FileEvent: Sendable, Hashable {
    /// The kind of an event.
    public enum Kind: Sendable, Hashable {
        /// A file or directory was created in the watched directory.
        case created
        /// A file's content or length changed. Every write reports such an event; most programs want
        /// ``closedAfterWriting``.
        case modified
        /// A file that was open for writing was closed, so its writer has finished.
        case closedAfterWriting
        /// Permissions, owner, times or the number of links changed.
        case attributesChanged
        /// A rename took a file out of the watched directory. The event of its new place has the same
        /// ``FileEvent/cookie``.
        case movedFrom
        /// A rename brought a file into the watched directory.
        case movedTo
        /// A file was deleted from the watched directory.
        case deleted
        /// The watched file or directory was itself deleted; ``ignored`` follows.
        case deletedSelf
        /// The watched file or directory was itself moved. It is still watched, and still reported under its old path.
        case movedSelf
        /// The file system of the watched file was unmounted; ``ignored`` follows.
        case unmounted
        /// The watch ended without a call of ``FileWatcher/unwatch(_:)``, and reports nothing more.
        case ignored
        /// The system's queue was full, and events of any watch may be lost; examine the files again. The sysctl
        /// `fs.inotify.max_queued_events` sets the length of the queue.
        case overflow
    }

    /// A set of event kinds for a watch to report. ``Kind/unmounted``, ``Kind/ignored`` and ``Kind/overflow`` are
    /// always reported and are not in the set.
    public struct Kinds: OptionSet, Sendable, Hashable {
        /// The bits for `inotify_add_watch`.
        public let rawValue: UInt32

        /// Creates a set of the kinds with these bits.
        public init(rawValue: UInt32) {
            self.rawValue = rawValue
        }

        private init(_ bit: Int32) {
            rawValue = UInt32(bitPattern: bit)
        }

        /// The kind ``FileEvent/Kind/created``.
        public static let created = Kinds(IN_CREATE)
        /// The kind ``FileEvent/Kind/modified``.
        public static let modified = Kinds(IN_MODIFY)
        /// The kind ``FileEvent/Kind/closedAfterWriting``.
        public static let closedAfterWriting = Kinds(IN_CLOSE_WRITE)
        /// The kind ``FileEvent/Kind/attributesChanged``.
        public static let attributesChanged = Kinds(IN_ATTRIB)
        /// The kinds ``FileEvent/Kind/movedFrom`` and ``FileEvent/Kind/movedTo``.
        public static let moved = Kinds(IN_MOVED_FROM | IN_MOVED_TO)
        /// The kind ``FileEvent/Kind/deleted``.
        public static let deleted = Kinds(IN_DELETE)
        /// The kinds ``FileEvent/Kind/deletedSelf`` and ``FileEvent/Kind/movedSelf``.
        public static let ownFate = Kinds(IN_DELETE_SELF | IN_MOVE_SELF)
        /// All kinds of events.
        public static let all: Kinds = [
            .created, .modified, .closedAfterWriting, .attributesChanged, .moved, .deleted, .ownFate,
        ]
    }

    /// The kind of event.
    public let kind: Kind

    /// The watch that reports the event; `nil` for an overflow, which concerns all watches.
    public let watch: FileWatch?

    /// The name of the file in the watched directory; `nil` if the event is about the watched file itself.
    ///
    /// File names are bytes and need not be UTF-8. Invalid UTF-8 becomes U+FFFD here; ``nameBytes`` has the original.
    public var name: String? { nameBytes.isEmpty ? nil : String(decoding: nameBytes, as: UTF8.self) }

    /// The bytes of the name; empty if there is none.
    public let nameBytes: [UInt8]

    /// A Boolean value that indicates whether the event is about a directory.
    public let isDirectory: Bool

    /// A number that connects the ``Kind/movedFrom`` and ``Kind/movedTo`` events of a rename; 0 for events of other
    /// kinds.
    ///
    /// The two events follow each other directly, though not always in the same batch. If only one of the directories
    /// is watched, only one event comes.
    public let cookie: UInt32

    /// The path of the file: the watch's path as given, and the name. `nil` for an overflow.
    public var path: String? {
        guard let watch else { return nil }
        guard let name else { return watch.path }
        return watch.path.hasSuffix("/") ? watch.path + name : "\(watch.path)/\(name)"
    }
}

extension FileEvent.Kinds: CustomStringConvertible {
    /// A textual representation, for example `created, moved`; `none` for an empty set.
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
    /// A textual representation, for example `movedTo /tmp/new.txt (7)`.
    public var description: String {
        "\(kind)\(path.map { " \($0)" } ?? "")\(isDirectory ? "/" : "")\(cookie == 0 ? "" : " (\(cookie))")"
    }
}

/// A watched path of a ``FileWatcher``.
public struct FileWatch: Sendable, Hashable {
    /// The path as given.
    public let path: String
    /// The system's number for the watch. The system does not reuse it soon.
    let number: Int32
}
