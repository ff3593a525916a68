extension RunLoop {
    /// A source for an event of the system, such as a signal, the end of a child, or changes of files. It has no public
    /// initializer; the ports have one, for the author of another kind of source.
    ///
    /// The loop keeps a source until it is invalidated or leaves its last mode. The end of its loop invalidates it. A
    /// source that is released without ever having been added is reported to the ``RunLoop/trace`` of the thread's
    /// loop.
    open class SystemSource: WatchedSource {
        // The kinds are in another module, whose classes can override only public members: instead of overrides they
        // set these two (decision 99).

        /// The closure to call when the descriptor is readable; `nil` once the source is invalid. The closure does not
        /// keep the source.
        private final var handler: (() -> Void)?
        /// The closure to call when the source has left its loop, and when it has been invalidated.
        @_spi(Ports) public private(set) final var cleanup: (() -> Void)?

        /// Creates a source for a descriptor that the caller owns; -1 if the descriptor is set later, before the source
        /// is scheduled.
        @_spi(Ports) public init(descriptor: Int32 = -1, name: String, order: Int, origin: Origin) {
            super.init(descriptor: descriptor, interest: .readable, order: order, origin: origin)
            self.name = name
        }

        deinit {
            if number == 0 && hasHandler { RunLoop.tellOfUnused(description) }
        }

        /// Sets the closures, once, before the source is scheduled. They are called on the loop's thread.
        ///
        /// - Parameters:
        ///   - handler: called in each pass in which the descriptor is readable, and not again while it runs. The
        ///     closure reads the descriptor, or the next pass calls it again.
        ///   - cleanup: called when the source has left its loop, and when it has been invalidated, so perhaps twice.
        @_spi(Ports) public final func setHandler(_ handler: @escaping () -> Void, cleanup: @escaping () -> Void) {
            (self.handler, self.cleanup) = (handler, cleanup)
        }

        /// Leaves the loop, if there is one, without invalidating the source.
        package final func leaveLoop() {
            if let loop { withdraw(from: loop) }
        }

        final override func serve(_ found: DescriptorEvents, in loop: RunLoop) -> Bool {
            guard let handler, due(of: found, in: loop) != nil else { return false }
            return serve(in: loop, handler)
        }

        final override func wasRemoved() { cleanup?() }

        final override var hasHandler: Bool { handler != nil }

        final override func dropHandler(_ body: () -> Void) {
            guard let handler = handler.take() else { return }
            body()
            cleanup?()
            withExtendedLifetime(handler) {}
        }
    }
}
