#if Adapters
internal import NIOCore

/// Decides when a program is told that its peer has read enough: not within a write of its own, and not while it is being told,
/// but in the loop's next turn.
struct DrainTurn {
    fileprivate enum State {
        case free
        /// The program writes, or is being told.
        case held
        /// The program is told in the next turn.
        case promised
    }
    fileprivate var state = State.free
}

/// A handler whose program writes on when its peer has read enough.
protocol DrainingHandler: AnyObject {
    var drainTurn: DrainTurn { get set }
    var context: ChannelHandlerContext? { get }
    var isWritable: Bool { get }

    /// Tells the program that it can write on.
    func drained()
}

extension DrainingHandler {
    /// Has `body` send what a call of the program has written.
    func duringWrite(_ body: () -> Void) {
        // Another call may be under way, which ends later.
        let isOutermost = drainTurn.state == .free
        if isOutermost { drainTurn.state = .held }
        body()
        if isOutermost, drainTurn.state == .held { drainTurn.state = .free }
    }

    /// Tells the program that it can write on; later if it is just writing.
    func peerHasRead() {
        guard let context, isWritable else { return }
        switch drainTurn.state {
        case .free:
            drainTurn.state = .held
            drained()
            if drainTurn.state == .held { drainTurn.state = .free }
        case .held:
            drainTurn.state = .promised
            let bound = NIOLoopBound(self as any DrainingHandler, eventLoop: context.eventLoop)
            context.eventLoop.execute {
                bound.value.drainTurn.state = .free
                bound.value.peerHasRead()
            }
        case .promised: break
        }
    }
}
#endif
