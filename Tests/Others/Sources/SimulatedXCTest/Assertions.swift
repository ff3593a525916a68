// swift-format-ignore-file: AlwaysUseLowerCamelCase
// The names are XCTest's.

public func XCTFail(_ message: String = "", file: StaticString = #filePath, line: UInt = #line) {
    Failures.add(message, file, line)
}

/// Records a failure, with the message, if the condition does not hold or throws.
private func check(
    _ holds: () throws -> Bool, _ failure: @autoclosure () -> String, _ message: () -> String, _ file: StaticString,
    _ line: UInt
) {
    do {
        if try !holds() { XCTFail("\(failure()) \(message())", file: file, line: line) }
    } catch {
        XCTFail("threw \(error) \(message())", file: file, line: line)
    }
}

public func XCTAssert(
    _ value: @autoclosure () throws -> Bool, _ message: @autoclosure () -> String = "",
    file: StaticString = #filePath, line: UInt = #line
) {
    check(value, "false", message, file, line)
}

public func XCTAssertTrue(
    _ value: @autoclosure () throws -> Bool, _ message: @autoclosure () -> String = "",
    file: StaticString = #filePath, line: UInt = #line
) {
    check(value, "false", message, file, line)
}

public func XCTAssertFalse(
    _ value: @autoclosure () throws -> Bool, _ message: @autoclosure () -> String = "",
    file: StaticString = #filePath, line: UInt = #line
) {
    check({ try !value() }, "true", message, file, line)
}

public func XCTAssertNil(
    _ value: @autoclosure () throws -> Any?, _ message: @autoclosure () -> String = "",
    file: StaticString = #filePath, line: UInt = #line
) {
    check({ try value() == nil }, "not nil", message, file, line)
}

public func XCTAssertNotNil(
    _ value: @autoclosure () throws -> Any?, _ message: @autoclosure () -> String = "",
    file: StaticString = #filePath, line: UInt = #line
) {
    check({ try value() != nil }, "nil", message, file, line)
}

public func XCTAssertIdentical(
    _ first: @autoclosure () throws -> AnyObject?, _ second: @autoclosure () throws -> AnyObject?,
    _ message: @autoclosure () -> String = "", file: StaticString = #filePath, line: UInt = #line
) {
    check({ try first() === second() }, "two objects", message, file, line)
}

public func XCTAssertNotIdentical(
    _ first: @autoclosure () throws -> AnyObject?, _ second: @autoclosure () throws -> AnyObject?,
    _ message: @autoclosure () -> String = "", file: StaticString = #filePath, line: UInt = #line
) {
    check({ try first() !== second() }, "one object", message, file, line)
}

// MARK: Comparisons

/// Compares two values, and names both if the comparison fails.
private func compare<Value>(
    _ first: () throws -> Value, _ second: () throws -> Value, _ holds: (Value, Value) -> Bool, _ message: () -> String,
    _ file: StaticString, _ line: UInt
) {
    do {
        let (first, second) = (try first(), try second())
        if !holds(first, second) { XCTFail("\(first) beside \(second) \(message())", file: file, line: line) }
    } catch {
        XCTFail("threw \(error) \(message())", file: file, line: line)
    }
}

public func XCTAssertEqual<Value: Equatable>(
    _ first: @autoclosure () throws -> Value, _ second: @autoclosure () throws -> Value,
    _ message: @autoclosure () -> String = "", file: StaticString = #filePath, line: UInt = #line
) {
    compare(first, second, ==, message, file, line)
}

public func XCTAssertNotEqual<Value: Equatable>(
    _ first: @autoclosure () throws -> Value, _ second: @autoclosure () throws -> Value,
    _ message: @autoclosure () -> String = "", file: StaticString = #filePath, line: UInt = #line
) {
    compare(first, second, !=, message, file, line)
}

public func XCTAssertGreaterThan<Value: Comparable>(
    _ first: @autoclosure () throws -> Value, _ second: @autoclosure () throws -> Value,
    _ message: @autoclosure () -> String = "", file: StaticString = #filePath, line: UInt = #line
) {
    compare(first, second, >, message, file, line)
}

public func XCTAssertGreaterThanOrEqual<Value: Comparable>(
    _ first: @autoclosure () throws -> Value, _ second: @autoclosure () throws -> Value,
    _ message: @autoclosure () -> String = "", file: StaticString = #filePath, line: UInt = #line
) {
    compare(first, second, >=, message, file, line)
}

public func XCTAssertLessThan<Value: Comparable>(
    _ first: @autoclosure () throws -> Value, _ second: @autoclosure () throws -> Value,
    _ message: @autoclosure () -> String = "", file: StaticString = #filePath, line: UInt = #line
) {
    compare(first, second, <, message, file, line)
}

public func XCTAssertLessThanOrEqual<Value: Comparable>(
    _ first: @autoclosure () throws -> Value, _ second: @autoclosure () throws -> Value,
    _ message: @autoclosure () -> String = "", file: StaticString = #filePath, line: UInt = #line
) {
    compare(first, second, <=, message, file, line)
}

// MARK: Errors

public func XCTAssertNoThrow(
    _ value: @autoclosure () throws -> some Any, _ message: @autoclosure () -> String = "",
    file: StaticString = #filePath, line: UInt = #line
) {
    do { _ = try value() } catch { XCTFail("threw \(error) \(message())", file: file, line: line) }
}

public func XCTAssertThrowsError(
    _ value: @autoclosure () throws -> some Any, _ message: @autoclosure () -> String = "",
    file: StaticString = #filePath, line: UInt = #line, _ handler: (any Error) -> Void = { _ in }
) {
    do {
        _ = try value()
        XCTFail("threw nothing \(message())", file: file, line: line)
    } catch {
        handler(error)
    }
}

public func XCTUnwrap<Value>(
    _ value: @autoclosure () throws -> Value?, _ message: @autoclosure () -> String = "",
    file: StaticString = #filePath, line: UInt = #line
) throws -> Value {
    guard let value = try value() else {
        XCTFail("nil \(message())", file: file, line: line)
        throw XCTSkip("a value was nil")
    }
    return value
}
