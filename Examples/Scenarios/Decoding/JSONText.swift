/// Returns the text as a JSON string, in quotes.
package func quoted(_ text: String) -> String { "\"\(escaped(text))\"" }

/// Returns the text with quotes, backslashes and control characters escaped as in JSON. Always one line.
package func escaped(_ text: String) -> String {
    text.unicodeScalars.reduce(into: "") { result, scalar in
        switch scalar {
        case "\"", "\\": result += "\\\(scalar)"
        case "\n": result += "\\n"
        case "\r": result += "\\r"
        case "\t": result += "\\t"
        case _ where scalar.value < 0x20:
            let digits = String(scalar.value, radix: 16)
            result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
        default: result.unicodeScalars.append(scalar)
        }
    }
}
