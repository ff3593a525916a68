import ExampleTestSupport
import Glibc
import RunLoopKit
import Testing

@testable import TTLStore

/// A directory that is removed afterwards.
final class ScratchDirectory {
    let path: String

    init() throws {
        var template = Array("/tmp/rlk-ttlstore-XXXXXX".utf8CString)
        try #require(mkdtemp(&template) != nil)
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    deinit {
        for name in names { unlink("\(path)/\(name)") }
        rmdir(path)
    }

    func file(_ name: String) -> String { "\(path)/\(name)" }

    var names: [String] {
        guard let directory = opendir(path) else { return [] }
        defer { closedir(directory) }
        var names: [String] = []
        while let entry = readdir(directory) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names.sorted()
    }
}

/// Returns the bytes of a file.
func bytes(of path: String) -> [UInt8] {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return [] }
    defer { close(descriptor) }
    var bytes: [UInt8] = []
    var piece = [UInt8](repeating: 0, count: 1 << 16)
    while case let count = read(descriptor, &piece, piece.count), count > 0 { bytes += piece[..<count] }
    return bytes
}

func write(_ bytes: [UInt8], to path: String) {
    let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    defer { close(descriptor) }
    #expect(write(descriptor, bytes, bytes.count) == bytes.count)
}

extension Store {
    /// The whole contents, to compare with others.
    var contents: [[UInt8]: [UInt8]] {
        var contents: [[UInt8]: [UInt8]] = [:]
        for shard in 0..<Table.shardCount {
            for (key, entry) in table[shard].entries { contents[key.bytes] = entry.value + "@\(entry.date)".utf8 }
        }
        return contents
    }

    /// Makes a random change.
    func change(using random: inout SeededGenerator, keys: Int = 100) {
        let key = Key(Array("k\(Int.random(in: 0..<keys, using: &random))".utf8))
        let expiry = clock.expiry(after: .random(in: 1_000_000...2_000_000, using: &random))!
        switch Int.random(in: 0..<100, using: &random) {
        case 0..<50: set(key, Array("\(random.next())".utf8))
        case 50..<70: set(key, [], expiry: expiry)
        case 70..<80: setExpiry(of: key, to: expiry)
        case 80..<85: setExpiry(of: key, to: nil)
        case 85..<90: changeValue(of: key) { $0.append(33) }
        case 90..<99: _ = remove(key)
        default: if keys < 1_000 { removeAll() }
        }
    }
}
