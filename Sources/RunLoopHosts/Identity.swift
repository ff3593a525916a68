/// An object that equals only itself.
protocol Identity: AnyObject, Hashable {}

extension Identity {
    static func == (one: Self, other: Self) -> Bool { one === other }
    func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
