@_exported import Foundation

/// The part of XCTest that the copied tests use. Waits take virtual time, where XCTest would wait in a loop of its own.
open class XCTestCase {
    public required init() {}

    open func setUp() {}
    open func tearDown() {}

    public func expectation(description: String) -> XCTestExpectation { XCTestExpectation(description: description) }

    public func fulfillment(
        of expectations: [XCTestExpectation], timeout: TimeInterval = 3_600, enforceOrder: Bool = false
    ) async {
        // In a task of its own, because a wait of XCTest ignores cancellations.
        await Task {
            let end = Date() + timeout
            while !expectations.allSatisfy(\.isDone), Date() < end { try? await Task.sleep(for: .milliseconds(1)) }
        }.value
        XCTestExpectation.check(expectations, inOrder: enforceOrder)
    }

    @available(*, noasync)
    public func wait(for expectations: [XCTestExpectation], timeout: TimeInterval = 3_600, enforceOrder: Bool = false) {
        let end = Date() + timeout
        while !expectations.allSatisfy(\.isDone), Date() < end { usleep(1_000) }
        XCTestExpectation.check(expectations, inOrder: enforceOrder)
    }
}

public final class XCTestExpectation: @unchecked Sendable {
    public let description: String
    private let lock = NSLock()
    private var dates: [Date] = []
    public var expectedFulfillmentCount = 1
    public var isInverted = false
    public var assertForOverFulfill = true

    public init(description: String) {
        self.description = description
    }

    public func fulfill() {
        let count = lock.withLock {
            dates.append(Date())
            return dates.count
        }
        if isInverted || assertForOverFulfill && count > expectedFulfillmentCount {
            XCTFail("\(description) was fulfilled \(count) times")
        }
    }

    private var whenFulfilled: Date? {
        lock.withLock { dates.count < expectedFulfillmentCount ? nil : dates[expectedFulfillmentCount - 1] }
    }

    /// `true` once the expectation is fulfilled; never for an inverted one, whose wait takes the whole time.
    fileprivate var isDone: Bool { !isInverted && whenFulfilled != nil }

    fileprivate static func check(_ expectations: [XCTestExpectation], inOrder: Bool) {
        for expectation in expectations where !expectation.isInverted && !expectation.isDone {
            XCTFail("\(expectation.description) was not fulfilled in time")
        }
        let dates = expectations.compactMap(\.whenFulfilled)
        if inOrder, dates != dates.sorted() { XCTFail("not in order: \(expectations.map(\.description))") }
    }
}

/// Thrown by a test that cannot run here.
public struct XCTSkip: Error {
    public let message: String?

    public init(_ message: String? = nil) {
        self.message = message
    }
}
