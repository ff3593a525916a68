/// Traps with a sentence that says what to do instead, in optimised builds too, where `precondition` says nothing.
@inlinable @inline(__always)
package func require(
    _ condition: @autoclosure () -> Bool, _ sentence: @autoclosure () -> String, file: StaticString = #fileID,
    line: UInt = #line
) {
    if !condition() { fatalError(sentence(), file: file, line: line) }
}
