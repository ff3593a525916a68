@_spi(Ports) public import RunLoopKit

/// The system of each world, by default the real one.
@_spi(Ports) public enum WorldSystem {
    /// The system of each world. Any thread; the maker of a world sets it before anything is opened there.
    public static let calls = WorldLocal<any SystemCalls> { _ in RealSystem.shared }
    private static let ofLoop = RunLoop.Local { calls[$0.world] }

    /// The system of the real world.
    public static var real: any SystemCalls { RealSystem.shared }

    /// Returns the system of a loop's world. Call it on the loop's thread.
    public static func of(_ loop: RunLoop) -> any SystemCalls { loop[ofLoop] }

    /// The system of the calling thread's world.
    public static var current: any SystemCalls { calls[RunLoop.currentWorld] }

    /// Sets the system of a loop's world. Called before that world opens a socket.
    public static func set(_ system: any SystemCalls, for loop: RunLoop) {
        calls.set(system, in: loop.world)
        loop[ofLoop] = system
    }
}
