import Glibc

/// What has gone wrong with a file.
struct DiskError: Error, CustomStringConvertible {
    let description: String
    /// The system's words for it, without the file.
    let reason: String

    /// Whether something may be lost that was written before.
    let isLoss: Bool

    init(_ what: String, _ number: Int32 = errno, isLoss: Bool = false) {
        self.isLoss = isLoss
        reason = String(cString: strerror(number))
        description = "\(what): \(reason)"
    }

    init(broken path: String, _ kind: Frame.Kind, at offset: Int) {
        isLoss = true
        reason = offset == 0 ? "not a \(kind) of this version" : "damaged at byte \(offset)"
        description =
            offset == 0 ? "\(path) is not a \(kind) of this version" : "\(path) is not a whole \(kind): \(reason)"
    }
}
