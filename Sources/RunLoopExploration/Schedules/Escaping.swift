extension String {
    /// Returns the text with some bytes replaced by a percent sign and two digits, as in a URL.
    func escaped(_ isEscaped: (UInt8) -> Bool) -> String {
        var bytes: [UInt8] = []
        for byte in utf8 {
            if isEscaped(byte) {
                bytes += Array(((byte < 16 ? "%0" : "%") + String(byte, radix: 16)).utf8)
            } else {
                bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Restores a text from the result of ``escaped(_:)``; `nil` if the text is no such result.
    init?(unescaping text: Substring) {
        var (rest, bytes) = (Array(text.utf8)[...], [UInt8]())
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard rest.count >= 2, let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16) else {
                return nil
            }
            bytes.append(value)
            rest.removeFirst(2)
        }
        self.init(validating: bytes, as: UTF8.self)
    }
}

/// The form of lines in journals and in the files of a campaign.
enum Lines {
    /// Returns a text without the ends of its lines.
    static func escaped(_ text: String) -> String { text.escaped { $0 < 32 || $0 == UInt8(ascii: "%") } }

    /// Returns the word and the text of a line.
    static func pair(_ line: Substring, after prefix: String) -> (word: String, text: String)? {
        guard line.hasPrefix(prefix) else { return nil }
        let rest = line.dropFirst(prefix.count)
        guard let space = rest.firstIndex(of: " "), let text = String(unescaping: rest[space...].dropFirst()) else {
            return nil
        }
        return (String(rest[..<space]), text)
    }
}
