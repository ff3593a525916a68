internal import Glibc

extension Exploration.Stepper {
    /// Steps by commands on standard input, and answers on standard output. See ``talk(reading:printing:)``.
    @available(*, noasync, message: "a simulation runs on one thread; call it from a synchronous function")
    public func talk() {
        talk(reading: { readLine() }) { lines in
            print(lines)
            // A pipe would keep them back.
            fflush(nil)
        }
    }

    /// Steps by commands: a line each, and `?` lists them. The end of the input ends it.
    ///
    /// - Parameters:
    ///   - read: reads a command; `nil` at the end of the input.
    ///   - write: prints one or more lines.
    @available(*, noasync, message: "a simulation runs on one thread; call it from a synchronous function")
    public func talk(reading read: () -> String?, printing write: (String) -> Void) {
        for line in opening { write(line) }
        write("\(place)")
        while let line = read() {
            let words = line.split(separator: " ")
            guard let command = Command(words.first ?? "n", words.dropFirst().first, isLast: words.count <= 2) else {
                write("no command is \"\(line)\"; ? lists them")
                continue
            }
            guard command != .quit else { return }
            write(answer(to: command))
        }
    }

    private enum Command: Hashable {
        case next, back, nextChoice, previousChoice, nextDeparture, previousDeparture, fault
        case go(Int), depart(Int)
        case world, picture, token, help, quit

        /// - Parameter isLast: whether no other words follow.
        init?(_ word: Substring, _ argument: Substring?, isLast: Bool) {
            guard isLast else { return nil }
            switch (word, argument, argument.flatMap { Int($0) }) {
            case ("n", nil, _): self = .next
            case ("b", nil, _): self = .back
            case ("s", nil, _): self = .nextChoice
            case ("S", nil, _): self = .previousChoice
            case ("x", nil, _): self = .nextDeparture
            case ("X", nil, _): self = .previousDeparture
            case ("f", nil, _): self = .fault
            case ("g", _, let number?): self = .go(number)
            case ("d", _, let number?): self = .depart(number)
            case ("w", nil, _): self = .world
            case ("p", nil, _): self = .picture
            case ("t", nil, _): self = .token
            case ("?", nil, _): self = .help
            case ("q", nil, _): self = .quit
            default: return nil
            }
        }
    }

    private static let help = """
        n, b   next step, step back       s, S   next, previous choice
        g N    go to step N               x, X   next, previous departure
        f      go to the fault            d N    depart to option N here
        w      the threads at this place  p      a picture around this place
        t      the token                  q      quit
        """

    /// The lines about the whole run.
    private var opening: [String] {
        var lines = [result]
        if let first = missing.first {
            lines.append(
                "departures that have not happened: \(missing.count) of \(token.departures.count), first \(first); the "
                    + "program has no such choice there, so take a token of this version of the program")
        }
        if isCut { lines.append("the record of the run is full; later steps are not shown") }
        return lines + ["? lists the commands"]
    }

    private var result: String { "\(token)  \(fault.map { "\($0)" } ?? "the run has passed")" }

    private func answer(to command: Command) -> String {
        switch command {
        case .next where isAtEnd: return "this is the end\n\(place)"
        case .next: goForward()
        case .back where position == 0: return "this is the beginning\n\(place)"
        case .back: goBack()
        case .nextChoice: if !goToNextChoice() { return "no choice comes after this place" }
        case .previousChoice: if !goToPreviousChoice() { return "no choice comes before this place" }
        case .nextDeparture: if !goToNextDeparture() { return "no departure comes after this place" }
        case .previousDeparture: if !goToPreviousDeparture() { return "no departure comes before this place" }
        case .fault:
            goToEnd()
        case .go(let number):
            guard (0...count).contains(number) else { return "the steps are 0 to \(count)" }
            go(to: number)
        case .depart(let option):
            do throws(Refusal) { try depart(to: option) } catch { return "\(error)" }
            return "\(result)\n\(place)"
        case .world:
            let lines = lookAround()
            return (["at \(place.time)"] + (lines.isEmpty ? ["nothing is known of the threads here"] : lines))
                .joined(separator: "\n")
        case .picture: return picture
        case .token: return "\(token)"
        case .help, .quit: return Self.help
        }
        return "\(place)"
    }
}
