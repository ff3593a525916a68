/// A wait that other code begins and ends, with a text for reports such as `reads a connection`.
package final class NamedWait: TaskWait, @unchecked Sendable {
    private let text: StaticString

    package init(_ remote: RunLoop.Remote, _ text: StaticString) {
        self.text = text
        super.init(remote)
    }

    package override var purpose: String? { "\(text)" }
}
