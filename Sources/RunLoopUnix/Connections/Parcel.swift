/// A value on its way to another thread, which is released if the loop there ends before it arrives.
final class Parcel<Content: ~Copyable>: @unchecked Sendable {
    // Unchecked: only the thread that has the parcel uses its content. A post passes it from one thread to the other,
    // and the lock of the mailbox orders their uses.
    private var content: Content?

    init(_ content: consuming Content) {
        self.content = consume content
    }

    /// Takes the content out. Called once.
    func take() -> Content {
        content.take()!
    }
}
