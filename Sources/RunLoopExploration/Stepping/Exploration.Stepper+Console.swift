internal import Glibc

extension Exploration.Stepper {
    /// Steps by commands on standard input, and answers on standard output. See ``talk(reading:printing:)``.
    @available(*, noasync, message: "a simulation runs on one thread; call it from a synchronous function")
    public func talk() {
        talk(reading: { readLine() }) { lines in
            print(lines)
            // A pipe would keep the lines back.
            fflush(nil)
        }
    }

    /// Steps by commands, one a line, until the end of the input; `?` lists them.
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
            if words == ["q"] { return }
            let answer = words.count > 2 ? nil : answer(to: words.first ?? "n", words.dropFirst().first)
            write(answer ?? "no command is \"\(line)\"; ? lists them")
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

    /// - Returns: `nil` for an unknown command.
    private func answer(to command: Substring, _ argument: Substring?) -> String? {
        switch (command, argument, argument.flatMap { Int($0) }) {
        case ("n", nil, _) where isAtEnd: return "this is the end\n\(place)"
        case ("n", nil, _): goForward()
        case ("b", nil, _) where position == 0: return "this is the beginning\n\(place)"
        case ("b", nil, _): goBack()
        case ("s", nil, _): if !goToNextChoice() { return "no choice comes after this place" }
        case ("S", nil, _): if !goToPreviousChoice() { return "no choice comes before this place" }
        case ("x", nil, _): if !goToNextDeparture() { return "no departure comes after this place" }
        case ("X", nil, _): if !goToPreviousDeparture() { return "no departure comes before this place" }
        case ("f", nil, _): goToEnd()
        case ("g", _, let number?):
            guard (0...count).contains(number) else { return "the steps are 0 to \(count)" }
            go(to: number)
        case ("d", _, let option?):
            do throws(DepartureError) { try depart(to: option) } catch { return "\(error)" }
            return "\(result)\n\(place)"
        case ("w", nil, _):
            let lines = lookAround()
            return (["at \(place.time)"] + (lines.isEmpty ? ["nothing is known of the threads here"] : lines))
                .joined(separator: "\n")
        case ("p", nil, _): return picture
        case ("t", nil, _): return "\(token)"
        case ("?", nil, _): return Self.help
        default: return nil
        }
        return "\(place)"
    }
}
