#if Adapters
internal import RunLoopCore

extension GLibContext: Opaque {}

@available(*, unavailable, message: "a main context belongs to its loop's thread")
extension GLibContext: Sendable {}
#endif
