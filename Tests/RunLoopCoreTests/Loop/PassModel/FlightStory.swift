import RunLoopCore

/// The events of a flight, with all entries about a call in one place, so that tests can remove, swap and change them.
struct FlightStory {
    struct Call: Hashable {
        let handler: Flight.Handler?
        var mode: String
        let lateness: Duration?
        /// The number of the effect, and the thread that has posted it, if another one.
        var number: UInt64?
        var thread: String?
    }

    enum Event: Hashable {
        case runBegan(String)
        case runEnded(String)
        case callBegan(Call)
        case callEnded
        case slept(Duration, Flight.ReasonToWake)
        case caused(Flight.Handler?, UInt64)
    }

    struct Entry: Hashable {
        let time: RunLoop.Instant
        var event: Event
    }

    var entries: [Entry] = []

    init(_ flight: Flight) {
        var open: [Int] = []
        for entry in flight.entries {
            let event: Event
            switch entry.event {
            case .runBegan(let mode): event = .runBegan(mode)
            case .runEnded(let mode): event = .runEnded(mode)
            case .callBegan(let handler, let mode):
                open.append(entries.count)
                event = .callBegan(Call(handler: handler, mode: mode, lateness: entry.lateness))
            case .callHas(let number, let thread):
                guard let last = open.last, case .callBegan(var call) = entries[last].event else { continue }
                (call.number, call.thread) = (number, thread)
                entries[last].event = .callBegan(call)
                continue
            case .callEnded:
                _ = open.popLast()
                event = .callEnded
            case .slept(let duration, let reason): event = .slept(duration, reason)
            case .caused(let handler, let number): event = .caused(handler, number)
            case .moved: continue
            }
            entries.append(Entry(time: entry.time, event: event))
        }
    }

    /// Returns the entries of the call, the run or the single event that begins at a place.
    func unit(at place: Int) -> Range<Int> {
        var depth = 0
        for index in place..<entries.count {
            switch entries[index].event {
            case .runBegan, .callBegan: depth += 1
            case .runEnded, .callEnded: depth -= 1
            case .slept, .caused: break
            }
            if depth <= 0 { return place..<index + 1 }
        }
        return place..<entries.count
    }
}
