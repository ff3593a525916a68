#if Adapters
internal import RunLoopKit

/// The part of a WebSocket that its server or client decides.
struct WebSocketTerms {
    let loop: RunLoop
    let modes: RunLoop.Modes
    /// The side. A client masks its frames, and its program learns from an error that the connection was lost.
    let isClient: Bool
    let idleTime: Duration
    let stallTime: Duration
    let messageBytes: Int
    let unreadBytes: Int
    /// The program's error for a conversation that was lost.
    let error: (WebSocket.Loss) -> any Error
}
#endif
