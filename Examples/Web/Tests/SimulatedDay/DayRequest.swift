/// A request of a client of the day.
enum DayRequest: CustomStringConvertible {
    case echo(Int)
    case put(String, [UInt8])
    case get(String)

    var description: String {
        switch self {
        case .echo(let number): "the echo of \(number)"
        case .put(let name, let content): "the upload of \(name), \(content.count) bytes"
        case .get(let name): "the upload \(name)"
        }
    }
}
