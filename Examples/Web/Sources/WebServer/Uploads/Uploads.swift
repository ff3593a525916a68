internal import Glibc
internal import NIOCore
internal import NIOHTTP1
internal import RunLoopKit
internal import RunLoopUnix
internal import Synchronization

/// The directory of uploaded files. A name leads to a complete file, on the disk, or to none. Any thread.
///
/// A file grows under a hidden name, locked, so that another daemon of the same directory leaves it alone.
final class Uploads: Sendable {
    let directory: String
    private let disks: LoopGroup
    private let begun = Atomic(0)

    /// The name of a file: letters, digits, dots, dashes and underscores, without a dot in front.
    struct Name: Sendable {
        let text: String

        /// - Throws: ``Refusal`` if a file must not have this name.
        init(_ text: String) throws(Refusal) {
            let isPlain = text.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"): true
                case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"):
                    true
                default: false
                }
            }
            guard isPlain, (1...128).contains(text.utf8.count), !text.hasPrefix(".") else {
                throw Refusal(
                    status: .badRequest, text: "a name has up to 128 letters, digits, dots, dashes or underscores")
            }
            self.text = text
        }
    }

    /// - Parameter disks: the loops that wait for the disk.
    init(in directory: String, _ disks: LoopGroup) {
        (self.directory, self.disks) = (directory, disks)
    }

    private static let prefix = ".upload-"

    /// Makes the directory, and removes the files that a crash has left incomplete. Blocks for the disk.
    func prepare() throws {
        let disk = Disk.current
        if !disk.exists(directory) {
            try disk.createDirectory(directory)
            try disk.syncDirectory(of: directory)
        }
        for name in try disk.contentsOfDirectory(directory) where name.hasPrefix(Self.prefix) {
            let path = "\(directory)/\(name)"
            // Another daemon of this directory has locked the files that it writes.
            guard let file = try? disk.open(path, .readingAndWritingLocked) else { continue }
            try withExtendedLifetime(file) { try disk.remove(path) }
        }
    }

    /// Opens a new file under a hidden name. Blocks for the disk.
    func makeFile() throws(SystemError) -> File {
        while true {
            let number = begun.wrappingAdd(1, ordering: .relaxed).newValue
            do {
                let file = try Disk.current.open("\(directory)/\(Self.prefix)\(number)", .readingAndWritingLocked)
                try file.truncate(to: 0)
                return file
            } catch  where error.errno == EWOULDBLOCK {
                // Another daemon's file.
            }
        }
    }

    func begin(_ name: Name, on eventLoop: any EventLoop, atMost most: Int) -> Upload {
        Upload(name, in: self, DiskQueue(nextDisk, eventLoop), atMost: most)
    }

    /// Opens a complete file.
    func open(_ name: Name, on eventLoop: any EventLoop) -> EventLoopFuture<StoredFile> {
        let (disk, path) = (DiskQueue(nextDisk, eventLoop), "\(directory)/\(name.text)")
        return disk.run {
            do {
                let file = try Disk.current.open(path, .reading)
                return StoredFile(file, length: try file.withContents { $0.count }, disk)
            } catch let error as SystemError where [ENOENT, EINVAL, ELOOP].contains(error.errno) {
                // No name, or not the name of a regular file.
                throw Refusal(status: .notFound, text: "there is no upload \(name.text)")
            }
        }
    }

    private var nextDisk: RunLoop.Remote {
        disks.loops[begun.load(ordering: .relaxed) % disks.loops.count]
    }
}
