internal import RunLoopCore
public import RunLoopKit
internal import RunLoopSimulation
internal import RunLoopUnix

extension SimulatedHost {
    /// The care of a service manager for a process, as systemd's for a unit of `Type=notify`. A value and `Sendable`.
    public struct Service: Sendable, Hashable {
        /// How long it waits for a sign of life before it ends the process; `nil`, the default, for ever.
        public var watchdogPeriod: Duration?

        /// Creates a service.
        public init(watchdogPeriod: Duration? = nil) {
            require(watchdogPeriod ?? .seconds(1) > .zero, "a watchdog's period is more than zero")
            self.watchdogPeriod = watchdogPeriod
        }

        var environment: [String: String] {
            var variables = ["NOTIFY_SOCKET": "@service-manager"]
            if let watchdogPeriod { variables["WATCHDOG_USEC"] = "\(watchdogPeriod.saturatedNanoseconds / 1_000)" }
            return variables
        }
    }

    /// A message from a process to its service manager. A value and `Sendable`.
    public struct Message: Sendable, Hashable, CustomStringConvertible {
        /// The time of the message.
        public let instant: RunLoop.Instant
        /// Its lines, for example `READY=1`.
        public let text: String

        /// For example `1.500000000 READY=1`.
        public var description: String { "\(instant) \(text)" }
    }

    /// The messages of its processes to the service manager, except signs of life.
    public var messages: [Message] { state.withLock { $0.messages } }

    func take(_ text: String) {
        let now = machine.network.simulation.now
        guard text == "WATCHDOG=1" else {
            state.withLock { $0.messages.append(Message(instant: now, text: text)) }
            machine.note(text)
            // READY=1 counts as the first sign of life.
            if text.split(separator: "\n").contains("READY=1") { expectLife() }
            return
        }
        expectLife()
    }

    private func expectLife() {
        guard let period = service?.watchdogPeriod else { return }
        let simulation = machine.network.simulation
        let starvation = simulation.schedule(
            at: simulation.now + period, "the watchdog's time is up", from: nil, on: name
        ) { [weak self] in
            self?.starve()
        }
        state.withLock { state in
            state.starvation?.callOff()
            state.starvation = starvation
        }
    }

    private func starve() {
        guard let process = state.withLock({ $0.process }) else { return }
        machine.note("starved its watchdog")
        state.withLock { $0.ending = .starvedWatchdog }
        process.end(by: .abort)
    }
}
