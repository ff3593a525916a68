/// The reason why a call of a disk fails.
struct Refusal: Error {
    let reason: Int32

    init(_ reason: Int32) {
        self.reason = reason
    }
}
