// Feeds the parser of TTLStore with input from libFuzzer; compiled together with the parser by `make fuzz`.

private let limits = RequestParser.Limits(arguments: 64, argumentSize: 256, inlineSize: 128, requestSize: 1024)

/// Reads all requests of the input, whole and byte by byte as from a slow client, and checks the parser's promises.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let bytes = UnsafeBufferPointer(start: data, count: count)
    var parser = RequestParser()
    parser.limits = limits
    var slow = RequestParser()
    slow.limits = limits
    var position = 0
    while case .request(let end) = parser.parse(bytes, from: position) {
        precondition(end > position && end <= count, "a request that ends outside of the input")
        let bounds = 0..<(parser.unquoted?.count ?? end - position)
        for argument in parser.arguments {
            precondition(argument.clamped(to: bounds) == argument, "a word outside of its request")
        }
        for piece in position + 1..<end {
            let result = slow.parse(UnsafeBufferPointer(rebasing: bytes[..<piece]), from: position)
            precondition(result == .incomplete, "a request that ends early")
        }
        precondition(slow.parse(bytes, from: position) == .request(end: end), "a request that ends elsewhere")
        precondition(slow.arguments == parser.arguments && slow.unquoted == parser.unquoted, "other words")
        position = end
    }
    return 0
}
