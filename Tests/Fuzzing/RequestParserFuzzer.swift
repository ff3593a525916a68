// Feeds the parser of TTLStore with whatever libFuzzer finds; compiled together with the parser by `make fuzz`.

/// Reads all requests of the input, as the server does, and checks what the parser promises.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let bytes = UnsafeBufferPointer(start: data, count: count)
    var parser = RequestParser()
    parser.limits = .init(arguments: 64, argumentSize: 256, inlineSize: 128)
    var position = 0
    while case .request(let end) = parser.parse(bytes, from: position) {
        precondition(end > position && end <= count, "a request that ends outside of the input")
        for argument in parser.arguments {
            if let unquoted = parser.unquoted {
                precondition(argument.upperBound <= unquoted.count, "a word outside of what was unquoted")
                continue
            }
            precondition(argument.lowerBound >= position && argument.upperBound <= end, "a word outside of its request")
        }
        position = end
    }
    return 0
}
