/// The delayed calls of a loop that can be found by their target.
///
/// Each call is in two lists: one of all calls of its target, and one of calls whose target, name and argument have the
/// same hash. So adding and removing a call are O(1) on average, and finding calls is O(number of calls found).
final class TargetedCalls {
    private struct Entry {
        let call: CallToken
        let name: String?
        let argument: AnyHashable?
    }

    // Unchecked as in `Item`: no access is open while an argument is hashed, compared or released.
    /// The entries by place; `nil` where a call was removed.
    @exclusivity(unchecked) private var entries = Buffer<Entry?>()
    @exclusivity(unchecked) private var freePlaces = Buffer<Int32>()
    /// The places of all calls.
    @exclusivity(unchecked) private var places = HashIndex()
    @exclusivity(unchecked) private var ofTarget = PlaceLists()
    @exclusivity(unchecked) private var ofHash = PlaceLists()

    static let local = RunLoop.Local { _ in TargetedCalls() }

    // The words of waiting calls differ, unless one of them has waited for four billion armings.
    private static func word(_ call: CallToken) -> UInt64 { UInt64(call.version) }

    private static func word(_ target: AnyObject) -> UInt64 {
        UInt64(UInt(bitPattern: ObjectIdentifier(target)))
    }

    private static func word(_ target: AnyObject, _ name: String?, _ argument: AnyHashable?) -> UInt64 {
        var hasher = Hasher()
        hasher.combine(ObjectIdentifier(target))
        hasher.combine(name)
        hasher.combine(argument)
        return UInt64(truncatingIfNeeded: hasher.finalize())
    }

    func add(_ call: CallToken, of target: AnyObject, named name: String?, _ argument: AnyHashable?) {
        let hash = Self.word(target, name, argument)
        let entry = Entry(call: call, name: name, argument: argument)
        let place: Int
        if freePlaces.isEmpty {
            place = entries.count
            entries.append(entry)
        } else {
            place = Int(freePlaces.removeLast())
            entries[place] = entry
        }
        assert(entries[place]?.call == call, "a call is not where it was put")
        places.insert(place, Self.word(call))
        ofTarget.append(place, Self.word(target))
        ofHash.append(place, hash)
        assert(places.count + freePlaces.count == entries.count, "a place is neither in use nor free")
    }

    func remove(_ call: CallToken) {
        guard let place = places.find(Self.word(call), where: { entries[$0]?.call == call }) else { return }
        places.remove(place, Self.word(call))
        ofTarget.remove(place)
        ofHash.remove(place)
        // The argument is released only when everything is in order: its deinit may do anything.
        let entry = entries[place].take()
        assert(entry?.call == call, "another call was removed")
        freePlaces.append(Int32(truncatingIfNeeded: place))
        if places.count == 0 {
            entries = Buffer()
            freePlaces = Buffer()
            ofTarget = PlaceLists()
            ofHash = PlaceLists()
        }
        withExtendedLifetime(entry) {}
    }

    /// Returns the calls of `target`, in the order in which they were requested.
    func calls(of target: AnyObject) -> [CallToken] {
        ofTarget.all(of: Self.word(target)).compactMap { entries[$0]?.call }
    }

    /// Returns the calls of `target` that have this name and an equal argument, in the order in which they were
    /// requested.
    func calls(of target: AnyObject, named name: String, _ argument: AnyHashable?) -> [CallToken] {
        let (hash, target) = (Self.word(target, name, argument), Self.word(target))
        let candidates = ofHash.all(of: hash).filter { ofTarget.word(of: $0) == target }.compactMap { entries[$0] }
        return candidates.filter { $0.name == name && $0.argument == argument }.map(\.call)
    }
}
