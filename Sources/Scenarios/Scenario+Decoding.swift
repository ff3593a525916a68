internal import FoundationEssentials

extension Scenario {
    /// Reads a scenario from the text of a JSON file.
    ///
    /// Nothing is ignored and nothing is guessed: an unknown key, a name that nothing has, a time before the start are
    /// errors that name the place.
    public init(json: [UInt8]) throws(ScenarioError) {
        try JSONSyntax.check(json)
        let tree: JSONValue
        do {
            tree = try JSONDecoder().decode(JSONValue.self, from: Data(json))
        } catch {
            throw ScenarioError("the file", "cannot be read as JSON")
        }
        let keys = ["duration", "commonModes", "timers", "busy", "runs", "actions"]
        let fields = try Fields(Located(place: "", value: tree), keys: keys)
        self.init(
            duration: try fields.required("duration").time(),
            commonModes: try fields.elements("commonModes").map(ownMode),
            timers: try fields.elements("timers").map(TimerEntry.init(at:)),
            busy: try fields.elements("busy").map(BusyEntry.init(at:)),
            runs: try fields.elements("runs").map(RunEntry.init(at:)),
            actions: try fields.elements("actions").map(ActionEntry.init(at:)))
        try checkNamesAreUnique()
        try checkActionsNameSomething()
    }

    private func checkNamesAreUnique() throws(ScenarioError) {
        var timerOf: [String: Int] = [:]
        var timerWithTarget: [String: Int] = [:]
        for (index, timer) in timers.enumerated() {
            if let other = timerOf.updateValue(index, forKey: timer.name) {
                let reason = "\(quoted(timer.name)) is the name of timers[\(other)] already"
                throw ScenarioError("timers[\(index)].name", reason)
            }
            guard let target = timer.target else { continue }
            if let other = timerWithTarget.updateValue(index, forKey: target.name) {
                let reason = "\(quoted(target.name)) is the target of timers[\(other)] already"
                throw ScenarioError("timers[\(index)].target.name", reason)
            }
        }
    }

    private func checkActionsNameSomething() throws(ScenarioError) {
        let timerNames = Set(timers.map(\.name))
        let targetNames = Set(timers.compactMap(\.target?.name))
        for (index, action) in actions.enumerated() {
            func check(_ name: String, _ names: Set<String>, _ key: String, _ thing: String) throws(ScenarioError) {
                guard !names.contains(name) else { return }
                throw ScenarioError("actions[\(index)].\(key)", "there is no \(thing) \(quoted(name))")
            }
            switch action.verb {
            case .invalidate(let timer): try check(timer, timerNames, "invalidate", "timer")
            case .fire(let timer): try check(timer, timerNames, "fire", "timer")
            case .setFireDate(let timer, _): try check(timer, timerNames, "setFireDate", "timer")
            case .addMode(_, let timer), .removeMode(_, let timer): try check(timer, timerNames, "timer", "timer")
            case .drop(let target): try check(target, targetNames, "drop", "target")
            case .makeCommon: break
            }
        }
    }
}

// MARK: - The entries

extension Scenario.TimerEntry {
    fileprivate init(at value: Located) throws(ScenarioError) {
        let keys = ["name", "first", "interval", "repeats", "modes", "busy", "tolerance", "target"]
        let fields = try Fields(value, keys: keys)
        let name = try fields.required("name").name()
        let repeats = try fields["repeats"]?.flag() ?? false
        let given = try repeats ? fields["interval"]?.repeatingInterval() : fields["interval"]?.time()
        if repeats, given == nil { throw fields.fault("a repeating timer needs an interval") }
        guard let first = try fields["first"]?.time() ?? given else {
            throw fields.fault("a timer needs first or interval")
        }
        self.init(
            name: name, first: first, interval: repeats ? given ?? 0 : 0, repeats: repeats,
            modes: try fields.modes(), busy: try fields["busy"]?.time() ?? 0,
            tolerance: try fields["tolerance"]?.time() ?? 0,
            target: try fields["target"].map(Scenario.Target.init(at:)))
    }
}

extension Scenario.Target {
    fileprivate init(at value: Located) throws(ScenarioError) {
        let fields = try Fields(value, keys: ["name", "hold"])
        var hold = Hold.strong
        if let given = fields["hold"] {
            guard let known = Hold(rawValue: try given.string()) else {
                throw given.fault("expected \"strong\" or \"weak\"")
            }
            hold = known
        }
        self.init(name: try fields.required("name").name(), hold: hold)
    }
}

extension Scenario.BusyEntry {
    fileprivate init(at value: Located) throws(ScenarioError) {
        let fields = try Fields(value, keys: ["at", "for", "modes"])
        self.init(
            at: try fields.required("at").time(), duration: try fields.required("for").time(),
            modes: try fields.modes())
    }
}

extension Scenario.RunEntry {
    fileprivate init(at value: Located) throws(ScenarioError) {
        let fields = try Fields(value, keys: ["mode", "from", "until"])
        self.init(
            mode: try ownMode(fields.required("mode")), from: try fields.required("from").time(),
            until: try fields.required("until").time())
    }
}

extension Scenario.ActionEntry {
    private static let verbs = [
        "invalidate", "fire", "setFireDate", "drop", "addMode", "removeMode", "makeCommon",
    ]

    fileprivate init(at value: Located) throws(ScenarioError) {
        let fields = try Fields(value, keys: ["at"] + Self.verbs + ["to", "timer"])
        self.init(at: try fields.required("at").time(), verb: try Self.verb(fields))
    }

    private static func verb(_ fields: Fields) throws(ScenarioError) -> Verb {
        let given = verbs.filter { fields[$0] != nil }
        guard given.count == 1, let verb = given.first, let object = fields[verb] else {
            let found = given.isEmpty ? "none" : given.joined(separator: " and ")
            throw fields.fault("expected exactly one of \(verbs.joined(separator: ", ")); found \(found)")
        }
        if let to = fields["to"], verb != "setFireDate" { throw to.fault("belongs to setFireDate only") }
        if let timer = fields["timer"], verb != "addMode", verb != "removeMode" {
            throw timer.fault("belongs to addMode and removeMode only")
        }
        switch verb {
        case "invalidate": return .invalidate(timer: try object.name())
        case "fire": return .fire(timer: try object.name())
        case "setFireDate": return .setFireDate(timer: try object.name(), to: try fields.required("to").time())
        case "drop": return .drop(target: try object.name())
        case "addMode": return .addMode(try object.name(), timer: try fields.required("timer").name())
        case "removeMode": return .removeMode(try object.name(), timer: try fields.required("timer").name())
        default: return .makeCommon(try ownMode(object))
        }
    }
}

/// A mode that is a mode of its own: `common` stands for several and cannot be run in or made common.
private func ownMode(_ value: Located) throws(ScenarioError) -> String {
    let mode = try value.name()
    guard mode != "common" else { throw value.fault("\"common\" is not a mode of its own") }
    return mode
}

// MARK: - The tree

/// A JSON value as it stands in the file; what it should be is known only where it is used.
private enum JSONValue: Decodable {
    case object([String: JSONValue])
    case array([JSONValue])
    case string(String)
    /// Nothing if the number is beyond what a `Decimal` holds.
    case number(Decimal?)
    case bool(Bool)
    case null

    init(from decoder: any Decoder) throws {
        let value = try decoder.singleValueContainer()
        if value.decodeNil() {
            self = .null
        } else if let bool = try? value.decode(Bool.self) {
            self = .bool(bool)
        } else if let string = try? value.decode(String.self) {
            self = .string(string)
        } else if let array = try? value.decode([JSONValue].self) {
            self = .array(array)
        } else if let object = try? value.decode([String: JSONValue].self) {
            self = .object(object)
        } else {
            // The syntax has been checked, so it is a number: as Decimal, for Double does not have 9.596.
            self = .number(try? value.decode(Decimal.self))
        }
    }

    var kind: String {
        switch self {
        case .object: "an object"
        case .array: "an array"
        case .string: "a string"
        case .number: "a number"
        case .bool(let bool): "\(bool)"
        case .null: "null"
        }
    }
}

/// A value and the path to it.
private struct Located {
    let place: String
    let value: JSONValue

    func fault(_ reason: String) -> ScenarioError {
        ScenarioError(place.isEmpty ? "top level" : place, reason)
    }

    func expected(_ what: String) -> ScenarioError { fault("expected \(what), found \(value.kind)") }

    func string() throws(ScenarioError) -> String {
        guard case .string(let string) = value else { throw expected("a string") }
        return string
    }

    func name() throws(ScenarioError) -> String {
        let name = try string()
        guard !name.isEmpty else { throw fault("must not be empty") }
        return name
    }

    func flag() throws(ScenarioError) -> Bool {
        guard case .bool(let bool) = value else { throw expected("true or false") }
        return bool
    }

    func elements() throws(ScenarioError) -> [Located] {
        guard case .array(let array) = value else { throw expected("an array") }
        return array.enumerated().map { Located(place: "\(place)[\($0)]", value: $1) }
    }

    /// A time in nanoseconds.
    func time() throws(ScenarioError) -> Int64 {
        let number = try decimal()
        guard number >= 0 else { throw fault("must not be negative") }
        return try nanoseconds(number)
    }

    /// The interval of a repeating timer: what is not positive becomes 0.1 ms, as Foundation has it.
    func repeatingInterval() throws(ScenarioError) -> Int64 {
        let number = try decimal()
        let rounded = number > 0 ? try nanoseconds(number) : 0
        return rounded > 0 ? rounded : 100_000
    }

    private func decimal() throws(ScenarioError) -> Decimal {
        guard case .number(let number) = value else { throw expected("a number") }
        guard let number else { throw fault("the number is out of range") }
        return number
    }

    /// Rounded to the nearest nanosecond, on the digits: they are what the file says.
    private func nanoseconds(_ seconds: Decimal) throws(ScenarioError) -> Int64 {
        // 200 years; sums of a few times must not leave 64 bits.
        guard seconds <= 6_311_520_000 else { throw fault("must not be more than 6311520000 seconds (200 years)") }
        let parts = seconds.description.split(separator: ".")
        let fraction = (parts.count > 1 ? parts[1] : "") + "0000000000"
        guard let whole = Int64(parts[0]), let tenths = Int64(fraction.prefix(10)) else { throw expected("a number") }
        return whole * 1_000_000_000 + (tenths + 5) / 10
    }
}

/// The members of an object whose keys are known.
private struct Fields {
    private let place: String
    private let members: [String: JSONValue]

    init(_ object: Located, keys: [String]) throws(ScenarioError) {
        guard case .object(let members) = object.value else { throw object.expected("an object") }
        self.place = object.place
        self.members = members
        // Sorted, so that of several the same one is named every time.
        if let unknown = members.keys.filter({ !keys.contains($0) }).min() {
            throw fault("unknown key \(quoted(unknown)); the keys here are \(keys.joined(separator: ", "))")
        }
    }

    subscript(key: String) -> Located? {
        members[key].map { Located(place: place.isEmpty ? key : "\(place).\(key)", value: $0) }
    }

    func required(_ key: String) throws(ScenarioError) -> Located {
        guard let value = self[key] else { throw fault("the key \"\(key)\" is missing") }
        return value
    }

    func elements(_ key: String) throws(ScenarioError) -> [Located] { try self[key]?.elements() ?? [] }

    func modes() throws(ScenarioError) -> [String] {
        guard let value = self["modes"] else { return ["default"] }
        return try value.elements().map { mode throws(ScenarioError) in try mode.name() }
    }

    func fault(_ reason: String) -> ScenarioError { ScenarioError(place.isEmpty ? "top level" : place, reason) }
}
