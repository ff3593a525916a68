package import RunLoopCore

/// Descriptors that the system does not know. They are watched as the system's are: what is ready is told in every pass.
package protocol SimulatedDescriptors: AnyObject, Sendable {
    /// Throws if a descriptor cannot be watched.
    ///
    /// - Returns: `false` if it is the system's.
    func check(_ descriptor: Int32) throws(DescriptorError) -> Bool
    /// Begins to note in `watch` when its descriptor becomes ready, and whether it is ready already.
    func begin(_ watch: DescriptorWatch)
    func end(_ watch: DescriptorWatch)
    /// What the watched descriptor is ready for.
    func readiness(of descriptor: Int32) -> DescriptorEvents
}

/// The interest of a loop in a simulated descriptor. It belongs to the thread whose turn it is.
package final class DescriptorWatch {
    package let descriptor: Int32
    package let events: DescriptorEvents
    let token: SourceToken
    fileprivate unowned let watches: DescriptorWatches
    /// It is among those that the driver looks at.
    fileprivate(set) var isNoted = false

    fileprivate init(
        _ descriptor: Int32, _ events: DescriptorEvents, _ token: SourceToken, _ watches: DescriptorWatches
    ) {
        (self.descriptor, self.events, self.token, self.watches) = (descriptor, events, token, watches)
    }

    /// The descriptor is ready for something.
    package func note(_ ready: DescriptorEvents) {
        guard !isNoted, !ready.isDisjoint(with: events) else { return }
        isNoted = true
        watches.note(self)
    }
}

/// The simulated descriptors that a driver watches.
final class DescriptorWatches {
    private let descriptors: any SimulatedDescriptors
    private var watches: [SourceToken: DescriptorWatch] = [:]
    /// Those that were ready when they were looked at last, or have become so since, in that order.
    private var noted: [DescriptorWatch] = []

    /// Has the thread look at what was noted.
    private let wake: () -> Void

    init(_ descriptors: any SimulatedDescriptors, wake: @escaping () -> Void) {
        (self.descriptors, self.wake) = (descriptors, wake)
    }

    func check(_ descriptor: Int32) throws(DescriptorError) -> Bool { try descriptors.check(descriptor) }

    /// - Returns: `false` if the descriptor is the system's.
    func begin(
        _ descriptor: Int32, _ events: DescriptorEvents, _ token: SourceToken
    ) throws(DescriptorError) -> Bool {
        guard try check(descriptor) else { return false }
        let watch = DescriptorWatch(descriptor, events, token, self)
        watches[token] = watch
        descriptors.begin(watch)
        return true
    }

    /// - Returns: `false` if it is not the token of one of these.
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

    /// Appends what is ready.
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
