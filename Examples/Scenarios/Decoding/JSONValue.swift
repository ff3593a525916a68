internal import FoundationEssentials

/// A JSON value as it stands in the file; what it should be is known only where it is used.
enum JSONValue {
    case object([String: JSONValue])
    case array([JSONValue])
    case string(String)
    /// As `Decimal`, for `Double` does not have 9.596; nothing if the number is beyond what a `Decimal` holds.
    case number(Decimal?)
    case bool(Bool)
    case null

    var kind: String {
        switch self {
        case .object: "an object"
        case .array: "an array"
        case .string: "a string"
        case .number: "a number"
        case .bool(let bool): "\(bool)"
        case .null: "null"
        }
    }
}
