@_spi(Ports) public import RunLoopKit
@_spi(Ports) internal import RunLoopSimulation
internal import RunLoopUnix

extension SimulatedHost {
    /// The supervision of a process by a service manager, as systemd's of a unit of `Type=notify`. A `Sendable` value.
    public struct Service: Sendable, Hashable {
        /// The time for which the service manager waits for a sign of life before it ends the process; `nil`, the
        /// default, for no limit.
        public var watchdogPeriod: Duration?

        /// Creates a service.
        public init(watchdogPeriod: Duration? = nil) {
            require(watchdogPeriod ?? .seconds(1) > .zero, "a watchdog's period is more than zero")
            self.watchdogPeriod = watchdogPeriod
        }

        var environment: [String: String] {
            var variables = ["NOTIFY_SOCKET": "@service-manager"]
            if let watchdogPeriod { variables["WATCHDOG_USEC"] = "\(watchdogPeriod.nanoseconds / 1_000)" }
            return variables
        }
    }

    /// A message from a process to its service manager. A `Sendable` value.
    public struct Message: Sendable, Hashable, CustomStringConvertible {
        /// The time of the message.
        public let instant: RunLoop.Instant
        /// The lines of the message, for example `READY=1`.
        public let text: String

        /// For example `1.500000000 READY=1`.
        public var description: String { "\(instant) \(text)" }
    }

    /// The messages of the host's processes to the service manager, except signs of life.
    public var messages: [Message] { state.messages }

    func take(_ text: String) {
        let simulation = machine.network.simulation
        if text != "WATCHDOG=1" {
            state.messages.append(Message(instant: simulation.now, text: text))
            machine.note(text)
            // READY=1 counts as the first sign of life.
            guard text.split(separator: "\n").contains("READY=1") else { return }
        }
        guard let period = service?.watchdogPeriod else { return }
        state.starvation?.callOff()
        state.starvation = simulation.schedule(
            at: simulation.now + period, "the watchdog's time is up", from: nil, on: name
        ) { [weak self] in self?.starve() }
    }

    private func starve() {
        guard let process = state.process else { return }
        machine.note("starved its watchdog")
        machine.network.simulation.meet(.watchdogStarved)
        state.ending = .starvedWatchdog
        process.end(by: .abort)
    }
}
