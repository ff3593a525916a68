@_spi(Ports) public import RunLoopCore

/// Descriptors that the system does not know, watched like the system's: each pass receives the ready ones.
@_spi(Ports) public protocol SimulatedDescriptors: AnyObject, Sendable {
    /// Throws if the descriptor cannot be watched.
    ///
    /// - Returns: `false` if the descriptor is the system's.
    func check(_ descriptor: Int32) throws(DescriptorError) -> Bool
    /// Begins to note readiness of the descriptor in `watch`, including present readiness.
    func begin(_ watch: DescriptorWatch)
    /// Ends what `begin(_:)` began.
    func end(_ watch: DescriptorWatch)
    /// The events that a watched descriptor is ready for.
    func readiness(of descriptor: Int32) -> DescriptorEvents
}

/// The interest of a loop in a simulated descriptor. Used only by the thread whose turn it is.
@_spi(Ports) public final class DescriptorWatch {
    /// The watched descriptor.
    public let descriptor: Int32
    let events: DescriptorEvents
    let token: SourceToken
    fileprivate unowned let watches: DescriptorWatches
    /// `true` while the driver lists the watch as possibly ready.
    fileprivate(set) var isNoted = false

    fileprivate init(
        _ descriptor: Int32, _ events: DescriptorEvents, _ token: SourceToken, _ watches: DescriptorWatches
    ) {
        (self.descriptor, self.events, self.token, self.watches) = (descriptor, events, token, watches)
    }

    /// Notes the watch if it asks for one of the events in `ready`.
    public func note(_ ready: DescriptorEvents) {
        guard !isNoted, !ready.isDisjoint(with: events) else { return }
        isNoted = true
        watches.note(self)
    }
}

/// The simulated descriptors that a driver watches.
final class DescriptorWatches {
    let descriptors: any SimulatedDescriptors
    private var watches: [SourceToken: DescriptorWatch] = [:]
    /// The watches that were ready at the last look or have become ready since, in that order.
    private var noted: [DescriptorWatch] = []

    /// Wakes the thread, which then looks at the noted watches.
    private let wake: () -> Void

    init(_ descriptors: any SimulatedDescriptors, wake: @escaping () -> Void) {
        (self.descriptors, self.wake) = (descriptors, wake)
    }

    /// - Returns: `false` if the descriptor is the system's.
    func begin(
        _ descriptor: Int32, _ events: DescriptorEvents, _ token: SourceToken
    ) throws(DescriptorError) -> Bool {
        guard try descriptors.check(descriptor) else { return false }
        let watch = DescriptorWatch(descriptor, events, token, self)
        watches[token] = watch
        descriptors.begin(watch)
        return true
    }

    /// - Returns: `false` if `token` belongs to no simulated descriptor.
    func end(_ token: SourceToken) -> Bool {
        guard let watch = watches.removeValue(forKey: token) else { return false }
        descriptors.end(watch)
        if watch.isNoted { noted.removeAll { $0 === watch } }
        return true
    }

    fileprivate func note(_ watch: DescriptorWatch) {
        noted.append(watch)
        wake()
    }

    func collect(into ready: ReadyQueue) {
        guard !noted.isEmpty else { return }
        noted = noted.filter { watch in
            let events = descriptors.readiness(of: watch.descriptor).intersection(watch.events)
            watch.isNoted = !events.isEmpty
            if watch.isNoted { ready.append(watch.token, events) }
            return watch.isNoted
        }
    }
}
