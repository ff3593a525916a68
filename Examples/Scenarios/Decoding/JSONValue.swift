internal import FoundationEssentials

/// A JSON value as in the file; only its user knows the expected type.
enum JSONValue {
    case object([String: JSONValue])
    case array([JSONValue])
    case string(String)
    /// A number as `Decimal`, because `Double` cannot represent 9.596; `nil` if it is out of range.
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
