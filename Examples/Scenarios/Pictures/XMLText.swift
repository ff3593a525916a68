/// Returns the text as the content of an XML element; characters that XML cannot have are replaced.
package func xmlEscaped(_ text: String) -> String {
    var result = ""
    for scalar in text.unicodeScalars {
        switch scalar {
        case "&": result += "&amp;"
        case "<": result += "&lt;"
        case ">": result += "&gt;"
        case "\u{FFFE}", "\u{FFFF}": result += "\u{FFFD}"
        case _ where scalar.value < 0x20 && !"\t\n\r".unicodeScalars.contains(scalar): result += "\u{FFFD}"
        default: result.unicodeScalars.append(scalar)
        }
    }
    return result
}
