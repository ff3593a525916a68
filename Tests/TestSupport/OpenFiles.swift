import Glibc

/// Returns the names in a directory.
package func directoryEntries(_ path: String) -> [String] {
    guard let directory = opendir(path) else { return [] }
    defer { closedir(directory) }
    var names: [String] = []
    while let entry = readdir(directory) {
        names.append(
            withUnsafeBytes(of: entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) })
    }
    return names
}

/// Returns the target of a symbolic link.
package func linkTarget(_ path: String) -> String? {
    var buffer = [UInt8](repeating: 0, count: 256)
    let count = readlink(path, &buffer, buffer.count)
    return count < 0 ? nil : String(decoding: buffer.prefix(count), as: UTF8.self)
}

/// Returns the targets of this process's open descriptors.
package func openFiles() -> [String] {
    // A process of a test may inherit a file that another test deletes meanwhile, which is still the same file.
    directoryEntries("/proc/self/fd").compactMap { linkTarget("/proc/self/fd/\($0)") }
        .map { $0.replacing(" (deleted)", with: "") }
}
