/// A wait that other code begins and ends, with a text for reports such as `reads a connection`.
@_spi(Ports) public final class NamedWait: TaskWait, @unchecked Sendable {
    private let text: StaticString

    /// Creates a wait with a text that completes "the task …".
    public init(_ remote: RunLoop.Remote, _ text: StaticString) {
        self.text = text
        super.init(remote)
    }

    public override var purpose: String? { "\(text)" }
}
