/// A metric and its values.
protocol Series: AnyObject, Sendable {
    /// The kind in the notation of Prometheus.
    var kind: String { get }
    /// The samples: the suffix of the name, a label of its own, and the value.
    var samples: [(suffix: String, label: String, value: String)] { get }
}
