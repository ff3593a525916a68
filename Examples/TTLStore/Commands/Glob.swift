/// A pattern for names. `*` matches any bytes, `?` any byte, `[a-c]` and `[^a-c]` one of some bytes, or none of them; a
/// backslash takes the next byte literally.
struct Glob {
    private let pattern: [UInt8]

    init(_ pattern: [UInt8]) {
        self.pattern = pattern
    }

    /// Returns `true` if the pattern matches the whole text. O(text × pattern) at most: only the last `*` is tried
    /// again, because the pattern before it cannot match better elsewhere.
    func matches(_ text: [UInt8]) -> Bool {
        var (place, index) = (0, 0)
        var star: (place: Int, index: Int)?
        while index < text.count {
            if place < pattern.count, pattern[place] == UInt8(ascii: "*") {
                place += 1
                star = (place, index)
            } else if let next = step(place, text[index]) {
                place = next
                index += 1
            } else if let last = star {
                star = (last.place, last.index + 1)
                (place, index) = (last.place, last.index + 1)
            } else {
                return false
            }
        }
        return pattern[place...].allSatisfy { $0 == UInt8(ascii: "*") }
    }

    /// Returns the next place in the pattern if the element at `place` matches the byte; `nil` if it does not.
    private func step(_ place: Int, _ byte: UInt8) -> Int? {
        guard place < pattern.count else { return nil }
        switch pattern[place] {
        case UInt8(ascii: "?"): return place + 1
        case UInt8(ascii: "["): return stepSet(place + 1, byte)
        case UInt8(ascii: "\\") where place + 1 < pattern.count: return pattern[place + 1] == byte ? place + 2 : nil
        default: return pattern[place] == byte ? place + 1 : nil
        }
    }

    /// Matches a set, which ends with a bracket, or with the pattern.
    private func stepSet(_ start: Int, _ byte: UInt8) -> Int? {
        var place = start
        let isInverted = place < pattern.count && pattern[place] == UInt8(ascii: "^")
        if isInverted { place += 1 }
        var isFound = false
        while place < pattern.count, pattern[place] != UInt8(ascii: "]") {
            if pattern[place] == UInt8(ascii: "\\"), place + 1 < pattern.count {
                place += 1
                isFound = isFound || pattern[place] == byte
            } else if place + 2 < pattern.count, pattern[place + 1] == UInt8(ascii: "-") {
                let (low, high) = (pattern[place], pattern[place + 2])
                isFound = isFound || (min(low, high)...max(low, high)).contains(byte)
                place += 2
            } else {
                isFound = isFound || pattern[place] == byte
            }
            place += 1
        }
        return isFound != isInverted ? min(place + 1, pattern.count) : nil
    }
}
