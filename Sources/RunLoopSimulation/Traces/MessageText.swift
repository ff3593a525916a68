internal import RunLoopCore

/// The most bytes of a message that a picture shows.
private let mostBytes = 48

/// The beginning of a message in quotes, with escapes as in JSON; `nil` if it is empty or is not text.
func messageText(of bytes: some Collection<UInt8>) -> String? {
    guard !bytes.isEmpty else { return nil }
    var start = Array(bytes.prefix(mostBytes))
    let isCut = start.count < bytes.count
    // The cut may be within a character.
    for _ in 0..<4 where isCut && String(validating: start, as: UTF8.self) == nil && !start.isEmpty {
        start.removeLast()
    }
    guard let text = String(validating: start, as: UTF8.self), !text.isEmpty,
        text.unicodeScalars.allSatisfy({ !$0.isControl || "\r\n\t".unicodeScalars.contains($0) })
    else { return nil }
    return quoted(text) + (isCut ? "…" : "")
}

extension Unicode.Scalar {
    fileprivate var isControl: Bool { properties.generalCategory == .control }
}
