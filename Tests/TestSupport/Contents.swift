import Glibc

/// Returns the text of a file; empty if there is none.
package func contents(of path: String) -> String {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return "" }
    defer { close(descriptor) }
    var text: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    while case let count = read(descriptor, &buffer, buffer.count), count > 0 { text += buffer[..<count] }
    return String(decoding: text, as: UTF8.self)
}
