/// Returns nanoseconds as seconds, exact: with a minimum number of decimals, and no trailing zeros beyond them.
package func decimalSeconds(_ nanoseconds: Int64, decimals: Int = 1) -> String {
    let (seconds, rest) = nanoseconds.magnitude.quotientAndRemainder(dividingBy: 1_000_000_000)
    let digits = String(rest)
    var fraction = String(repeating: "0", count: 9 - digits.count) + digits
    while fraction.count > decimals, fraction.last == "0" { fraction.removeLast() }
    return (nanoseconds < 0 ? "-" : "") + "\(seconds)" + (fraction.isEmpty ? "" : ".\(fraction)")
}

/// Returns nanoseconds as seconds, rounded to a number of decimals, of which a minimum number stays.
package func roundedSeconds(_ nanoseconds: Int64, decimals: Int, atLeast least: Int) -> String {
    let unit = (decimals..<9).reduce(Int64(1)) { unit, _ in unit * 10 }
    let (units, rest) = nanoseconds.quotientAndRemainder(dividingBy: unit)
    let up: Int64 = unit > 1 && rest >= unit / 2 ? 1 : 0
    return decimalSeconds((units + up) * unit, decimals: least)
}
