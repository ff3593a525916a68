@_spi(Ports) internal import RunLoopSimulation

/// Faults that count as the same: of one kind, and with the same words, except for numbers.
struct FaultGroup: Hashable {
    let kind: Fault.Kind
    let words: String

    init(of fault: Fault) {
        self.init(fault.kind, String(fault.sentence))
    }

    init(_ kind: Fault.Kind, _ words: String) {
        self.kind = kind
        var text = ""
        for character in words {
            guard character.isASCII, character.isNumber else {
                text.append(character)
                continue
            }
            if text.last != "#" { text.append("#") }
        }
        self.words = text
    }

    /// The name of the group's file, which is the same in each process.
    var fileName: String {
        var hash = SeededNumbers(seed: 0, for: "\(kind.rawValue) \(words)")
        let digits = String(hash.next(), radix: 16)
        return "finding-\(kind.rawValue)-\(String(repeating: "0", count: 16 - digits.count))\(digits).txt"
    }
}

/// A finding as a file: the fault, the token, and the report.
struct FindingFile {
    let fault: Fault
    let token: ScheduleToken
    let report: String

    var group: FaultGroup { FaultGroup(of: fault) }

    var text: String { "\(fault.line)\ntoken \(token)\n\n\(report)\n" }
}

extension FindingFile {
    init?(_ text: String) {
        let lines = text.split(separator: "\n", maxSplits: 3, omittingEmptySubsequences: false)
        guard lines.count == 4, let fault = Fault(line: lines[0]), lines[1].hasPrefix("token "),
            let token = ScheduleToken(String(lines[1].dropFirst(6)))
        else { return nil }
        self.init(fault: fault, token: token, report: String(lines[3]))
    }
}
