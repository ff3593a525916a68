/// Returns the text as a JSON string, in quotes.
@_spi(Ports) public func quoted(_ text: String) -> String { "\"\(escaped(text))\"" }

/// Returns the text with quotes, backslashes and control characters escaped as in JSON: always a single line.
@_spi(Ports) public func escaped(_ text: String) -> String {
    var result = ""
    for scalar in text.unicodeScalars {
        switch scalar {
        case "\"": result += "\\\""
        case "\\": result += "\\\\"
        case "\n": result += "\\n"
        case "\r": result += "\\r"
        case "\t": result += "\\t"
        case _ where scalar.value < 0x20: result += "\\u" + padded(String(scalar.value, radix: 16), to: 4)
        default: result.unicodeScalars.append(scalar)
        }
    }
    return result
}

/// Returns the digits, padded with leading zeros to `count`.
func padded(_ digits: String, to count: Int) -> String {
    String(repeating: "0", count: max(0, count - digits.count)) + digits
}
