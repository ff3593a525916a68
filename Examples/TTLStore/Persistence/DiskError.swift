import Glibc
import RunLoopUnix

/// An error of a file.
struct DiskError: Error, CustomStringConvertible {
    let description: String
    /// The system's message, without the file.
    let reason: String

    /// `true` if written data may be lost.
    let isLoss: Bool

    init(_ what: String, _ number: Int32 = errno, isLoss: Bool = false) {
        self.isLoss = isLoss
        reason = String(cString: strerror(number))
        description = "\(what): \(reason)"
    }

    /// Performs an operation on the disk.
    ///
    /// - Parameter what: the name of the operation, for the error.
    static func doing<Result>(
        _ what: String, isLoss: Bool = false, _ body: () throws(SystemError) -> Result
    ) throws(DiskError) -> Result {
        do {
            return try body()
        } catch {
            throw DiskError(what, error.errno, isLoss: isLoss)
        }
    }

    /// Calls `body` with the bytes of a file, which are valid until it returns.
    static func withContents<Result>(
        of file: File, _ body: (UnsafeRawBufferPointer) throws(DiskError) -> Result
    ) throws(DiskError) -> Result {
        do {
            return try file.withContents(body)
        } catch let error as SystemError {
            throw DiskError(error.operation, error.errno)
        } catch let error as DiskError {
            throw error
        } catch {
            fatalError("files have no other errors: \(error)")
        }
    }

    fileprivate init(broken path: String, _ kind: Frame.Kind, at offset: Int) {
        isLoss = true
        reason = offset == 0 ? "not a \(kind) of this version" : "damaged at byte \(offset)"
        description =
            offset == 0 ? "\(path) is not a \(kind) of this version" : "\(path) is not a whole \(kind): \(reason)"
    }
}

extension Frame {
    /// Calls the body with all changes in the file at a path.
    static func read(
        _ bytes: UnsafeRawBufferPointer, _ kind: Kind, of path: String, _ body: (Store.Change) -> Void
    ) throws(DiskError) -> Extent {
        do throws(Broken) {
            return try read(bytes, kind, body)
        } catch {
            throw DiskError(broken: path, kind, at: error.offset)
        }
    }
}
