internal import FoundationEssentials
internal import RunLoopKit

/// A value and the path to it.
struct Located {
    let place: String
    let value: JSONValue

    func fault(_ reason: String) -> ScenarioError {
        ScenarioError(place.isEmpty ? "top level" : place, reason)
    }

    func expected(_ what: String) -> ScenarioError { fault("expected \(what), found \(value.kind)") }

    func string() throws(ScenarioError) -> String {
        guard case .string(let string) = value else { throw expected("a string") }
        return string
    }

    func name() throws(ScenarioError) -> String {
        let name = try string()
        guard !name.isEmpty else { throw fault("must not be empty") }
        return name
    }

    func flag() throws(ScenarioError) -> Bool {
        guard case .bool(let bool) = value else { throw expected("true or false") }
        return bool
    }

    func elements() throws(ScenarioError) -> [Located] {
        guard case .array(let array) = value else { throw expected("an array") }
        return array.enumerated().map { Located(place: "\(place)[\($0)]", value: $1) }
    }

    /// Returns a whole number that is not below `least`.
    func count(atLeast least: Int) throws(ScenarioError) -> Int {
        let number = try decimal()
        guard let count = Int(number.description), count >= least else {
            throw fault("expected a whole number, at least \(least)")
        }
        return count
    }

    /// Returns the word of a key that allows only certain words.
    func word<Word: RawRepresentable & CaseIterable>() throws(ScenarioError) -> Word where Word.RawValue == String {
        guard let word = Word(rawValue: try string()) else {
            let words = Word.allCases.map { quoted($0.rawValue) }.joined(separator: " or ")
            throw fault("expected \(words)")
        }
        return word
    }

    /// Returns a time in nanoseconds.
    func time() throws(ScenarioError) -> Int64 {
        let number = try decimal()
        guard number >= 0 else { throw fault("must not be negative") }
        return try nanoseconds(number)
    }

    /// Returns the interval of a repeating timer; a value that is not positive becomes 0.1 ms, as in Foundation.
    func repeatingInterval() throws(ScenarioError) -> Int64 {
        let number = try decimal()
        let rounded = number > 0 ? try nanoseconds(number) : 0
        return rounded > 0 ? rounded : 100_000
    }

    /// Returns an interval, which must be above zero.
    func sourceInterval() throws(ScenarioError) -> Int64 {
        let interval = try time()
        guard interval > 0 else { throw fault("must be above zero") }
        return interval
    }

    private func decimal() throws(ScenarioError) -> Decimal {
        guard case .number(let number) = value else { throw expected("a number") }
        guard let number else { throw fault("the number is out of range") }
        return number
    }

    /// Returns the seconds rounded to the nearest nanosecond, computed on the decimal digits of the file.
    private func nanoseconds(_ seconds: Decimal) throws(ScenarioError) -> Int64 {
        // 200 years; sums of a few times must not leave 64 bits.
        guard seconds <= 6_311_520_000 else { throw fault("must not be more than 6311520000 seconds (200 years)") }
        let parts = seconds.description.split(separator: ".")
        let fraction = (parts.count > 1 ? parts[1] : "") + "0000000000"
        guard let whole = Int64(parts[0]), let tenths = Int64(fraction.prefix(10)) else { throw expected("a number") }
        return whole * 1_000_000_000 + (tenths + 5) / 10
    }
}

/// The members of an object whose keys are known.
struct Fields {
    private let place: String
    private let members: [String: JSONValue]

    init(_ object: Located, keys: [String]) throws(ScenarioError) {
        guard case .object(let members) = object.value else { throw object.expected("an object") }
        self.place = object.place
        self.members = members
        // Sorted, so that the same unknown key is named every time.
        if let unknown = members.keys.filter({ !keys.contains($0) }).min() {
            throw fault("unknown key \(quoted(unknown)); the keys here are \(keys.joined(separator: ", "))")
        }
    }

    subscript(key: String) -> Located? {
        members[key].map { Located(place: place.isEmpty ? key : "\(place).\(key)", value: $0) }
    }

    func required(_ key: String) throws(ScenarioError) -> Located {
        guard let value = self[key] else { throw fault("the key \"\(key)\" is missing") }
        return value
    }

    func elements(_ key: String) throws(ScenarioError) -> [Located] { try self[key]?.elements() ?? [] }

    func modes() throws(ScenarioError) -> [String] {
        guard let value = self["modes"] else { return ["default"] }
        return try value.elements().map { mode throws(ScenarioError) in try mode.name() }
    }

    func fault(_ reason: String) -> ScenarioError { ScenarioError(place.isEmpty ? "top level" : place, reason) }
}

/// Returns a mode other than `common`, which stands for several and cannot be run in or made common.
func ownMode(_ value: Located) throws(ScenarioError) -> String {
    let mode = try value.name()
    guard mode != "common" else { throw value.fault("\"common\" is not a mode of its own") }
    return mode
}
