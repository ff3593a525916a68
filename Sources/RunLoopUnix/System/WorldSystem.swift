package import RunLoopKit

/// The system of each world, by default the real one.
package enum WorldSystem {
    package static let calls = WorldLocal<any SystemCalls> { _ in RealSystem.shared }
    private static let ofLoop = RunLoop.Local { calls[$0.world] }

    package static func of(_ loop: RunLoop) -> any SystemCalls { loop[ofLoop] }

    /// The system of the calling thread's world.
    package static var current: any SystemCalls { calls[RunLoop.currentWorld] }

    /// Sets the system of a loop's world. Called before that world opens a socket.
    package static func set(_ system: any SystemCalls, for loop: RunLoop) {
        calls.set(system, in: loop.world)
        loop[ofLoop] = system
    }
}
