import Synchronization

/// The failures of the test that runs.
public enum Failures {
    private static let found = Mutex<[String]>([])

    /// The failures since the last call.
    public static func take() -> [String] {
        found.withLock { found in
            defer { found = [] }
            return found
        }
    }

    static func add(_ text: String, _ file: StaticString, _ line: UInt) {
        let name = "\(file)".split(separator: "/").last ?? ""
        found.withLock { $0.append("\(name):\(line): \(text)") }
    }
}

/// A test of another package.
public struct CopiedTest: Sendable {
    public let name: String
    public let run: @Sendable () async throws -> Void

    /// - Parameter body: calls the test method of a new instance.
    public init<Case: XCTestCase>(_ name: String, _ body: @escaping @Sendable (Case) async throws -> Void) {
        self.name = name
        run = {
            let test = Case()
            test.setUp()
            defer { test.tearDown() }
            try await body(test)
        }
    }
}
