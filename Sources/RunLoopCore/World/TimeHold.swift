/// Keeps virtual time from advancing while an event outside of the simulation is awaited.
@_spi(Ports) public protocol TimeHold: AnyObject, Sendable {
    /// Lets time advance. Any thread; harmless when repeated.
    func release()
}

extension RunLoop {
    /// Keeps virtual time from advancing. Call it before the request leaves. On the loop's thread; `nil` on real time.
    ///
    /// - Parameter what: the awaited event, for example `the end of child sort`.
    @_spi(Ports) public func holdTime(for what: @autoclosure () -> String) -> (any TimeHold)? {
        isVirtual ? world.holdTime(for: what()) : nil
    }
}
