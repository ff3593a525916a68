package import RunLoopKit

/// Which system a world has: the real one, unless the world says otherwise.
package enum WorldSystem {
    package static let calls = WorldLocal<any SystemCalls> { _ in RealSystem.shared }
    private static let ofLoop = RunLoop.Local { calls[$0.world] }

    static func of(_ loop: RunLoop) -> any SystemCalls { loop[ofLoop] }

    /// That of the calling thread.
    static var current: any SystemCalls { calls[RunLoop.currentWorld] }

    /// Gives the world of a loop another system, before anything there has opened a socket.
    package static func set(_ system: any SystemCalls, for loop: RunLoop) {
        calls.set(system, in: loop.world)
        loop[ofLoop] = system
    }
}
