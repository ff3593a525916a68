extension String {
    /// The text as part of an XML or HTML document, also in an attribute. Control characters other than the
    /// end of a line become their symbols.
    var markup: String {
        var text = ""
        for scalar in unicodeScalars {
            switch scalar {
            case "&": text += "&amp;"
            case "<": text += "&lt;"
            case ">": text += "&gt;"
            case "\"": text += "&quot;"
            case "'": text += "&#39;"
            case "\n": text += "&#10;"
            case "\u{7F}": text += "␡"
            case "\0"..<" ": text.unicodeScalars.append(Unicode.Scalar(0x2400 + scalar.value)!)
            // XML documents cannot contain these.
            case "\u{80}"..<"\u{A0}", "\u{FFFE}", "\u{FFFF}": text += "\u{FFFD}"
            default: text.unicodeScalars.append(scalar)
            }
        }
        return text
    }
}
