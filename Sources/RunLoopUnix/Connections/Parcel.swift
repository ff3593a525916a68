/// Something on its way to another thread. If it does not arrive, because the loop there ends, it is let go.
final class Parcel<Content: ~Copyable>: @unchecked Sendable {
    // Unchecked: whoever has the parcel is alone with its content. It goes from one thread to the other by a post, and the
    // lock of the mailbox puts the one's use before the other's.
    private var content: Content?

    init(_ content: consuming Content) {
        self.content = consume content
    }

    /// Takes the content out, once.
    func take() -> Content {
        content.take()!
    }
}
