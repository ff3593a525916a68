import Glibc

/// Returns the number of open descriptors of the process.
func openDescriptors() -> Int {
    guard let directory = opendir("/proc/self/fd") else { return -1 }
    defer { closedir(directory) }
    var count = 0
    while readdir(directory) != nil { count += 1 }
    // Without `.`, `..`, and the descriptor that reads the directory.
    return count - 3
}
