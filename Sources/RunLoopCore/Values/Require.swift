/// Traps with a sentence that says how to correct the call, even in optimised builds, where `precondition` prints
/// nothing.
@inlinable @inline(__always)
@_spi(Ports) public func require(
    _ condition: @autoclosure () -> Bool, _ sentence: @autoclosure () -> String, file: StaticString = #fileID,
    line: UInt = #line
) {
    if !condition() { fatalError(sentence(), file: file, line: line) }
}
