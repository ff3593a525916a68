// Feeds the loaders of TTLStore's snapshots and logs with input from libFuzzer; compiled together with them by `make
// fuzz`.

/// The declarations of the store that the loaders need.
struct Key {
    let bytes: [UInt8]

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }
}

enum Store {
    enum Change {
        case set(Key, value: [UInt8], date: Int)
        case expire(Key, date: Int)
        case remove(Key)
        case removeAll
    }
}

/// Loads the input as it is, and as the changes of a frame with valid checksums. Changes that are loaded and written
/// again must be unchanged.
private func load(_ bytes: UnsafeRawBufferPointer, _ kind: Frame.Kind) {
    var changes: [UInt8] = []
    _ = try? Frame.read(bytes, kind) { Record.append($0, to: &changes) }

    let payload = [UInt8](bytes)
    let sum = bytes.isEmpty ? 0 : Checksum.of(bytes)
    var file = Array(kind.rawValue.utf8) + Frame.head(length: payload.count, sum: sum) + payload
    let end = file.count
    if kind == .snapshot, !payload.isEmpty { file += Frame.head(length: 0, sum: sum) }
    changes = []
    let extent = file.withUnsafeBytes { file in try? Frame.read(file, kind) { Record.append($0, to: &changes) } }
    guard let extent, !payload.isEmpty else { return }
    precondition(extent.end == (kind == .snapshot ? file.count : end), "a frame that ends elsewhere")
    precondition(changes == payload, "other changes")
}

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let bytes = UnsafeRawBufferPointer(start: data, count: count)
    load(bytes, .snapshot)
    load(bytes, .log)
    return 0
}
