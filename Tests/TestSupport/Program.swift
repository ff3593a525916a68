import Glibc

/// Returns the path of a program of this package, which lies beside the tests' own.
package func pathOfProgram(_ name: String) -> String {
    var buffer = [UInt8](repeating: 0, count: 4096)
    let count = readlink("/proc/self/exe", &buffer, buffer.count)
    let own = String(decoding: buffer.prefix(max(0, count)), as: UTF8.self)
    return own[..<(own.lastIndex(of: "/") ?? own.startIndex)] + "/\(name)"
}
