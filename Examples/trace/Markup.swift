extension String {
    /// The text as markup shows it. Control characters, which markup may not contain, have their pictures.
    var markup: String {
        var result = ""
        for scalar in unicodeScalars {
            switch scalar {
            case "&": result += "&amp;"
            case "<": result += "&lt;"
            case ">": result += "&gt;"
            case "\"": result += "&quot;"
            case _ where scalar.value < 0x20: result.unicodeScalars.append(Unicode.Scalar(0x2400 + scalar.value)!)
            case "\u{7F}": result += "\u{2421}"
            case "\u{FFFE}", "\u{FFFF}": result += "\u{FFFD}"
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }
}

extension Double {
    /// A coordinate with at most two decimals.
    var coordinate: String {
        let hundredths = Int((self * 100).rounded())
        guard hundredths % 100 != 0 else { return "\(hundredths / 100)" }
        let rest = "\(abs(hundredths) % 100)"
        return "\(hundredths < 0 ? "-" : "")\(abs(hundredths) / 100).\(rest.count == 1 ? "0" : "")\(rest)"
    }
}
