/// A wait that is begun and ended by code elsewhere, with a description for reports.
package final class NamedWait: TaskWait, @unchecked Sendable {
    private let text: StaticString

    /// - Parameter text: a description for reports, for example `reads a connection`.
    package init(_ remote: RunLoop.Remote, _ text: StaticString) {
        self.text = text
        super.init(remote)
    }

    package override var purpose: String? { "\(text)" }
}
