extension RunLoop {
    /// The random numbers of a loop's world: the system's, or numbers that follow from the seed of a simulation.
    ///
    /// ```swift
    /// let pause = Duration.seconds(Double.random(in: 0..<60, using: &loop.randomNumbers))
    /// ```
    ///
    /// Choices made with these numbers are repeated in each run of a simulation with the same seed. Copies continue the
    /// same sequence. Like `SystemRandomNumberGenerator`, usable on any thread and `Sendable`.
    public struct RandomNumbers: RandomNumberGenerator, Sendable {
        private let source: @Sendable () -> UInt64

        /// The generator of a world's numbers.
        @_spi(Ports) public static let source = WorldLocal<@Sendable () -> UInt64> { _ in { .random(in: .min ... .max) }
        }

        /// Creates a generator that asks a function for each number.
        @_spi(Ports) public init(_ source: @escaping @Sendable () -> UInt64) {
            self.source = source
        }

        /// Returns the next number. O(1).
        public func next() -> UInt64 { source() }
    }

    /// The random numbers of this loop's world, to be passed as `&loop.randomNumbers`; setting the property has no
    /// effect. On the loop's thread.
    public var randomNumbers: RandomNumbers {
        get { RandomNumbers(RandomNumbers.source[world]) }
        set {}
    }
}
