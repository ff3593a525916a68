/// Looks into a value as Swift Testing does when an expectation fails: at each child of its mirror, and theirs, and at
/// their descriptions.
///
/// - Returns: the number of values seen.
@discardableResult
package func reflect(_ value: Any, depth: Int = 10) -> Int {
    _ = String(describing: value)
    guard depth > 0 else { return 1 }
    return Mirror(reflecting: value).children.prefix(10).reduce(1) { $0 + reflect($1.value, depth: depth - 1) }
}

/// Returns `true` if a mirror of the value shows none of its contents.
package func isOpaque(_ value: Any) -> Bool {
    Mirror(reflecting: value).children.isEmpty && Mirror(reflecting: value).superclassMirror == nil
}
