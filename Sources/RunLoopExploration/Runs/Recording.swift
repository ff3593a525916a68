/// The record to make of a run, besides its departures.
enum Recording: String {
    case none
    /// A trace of all events and choices.
    case trace
}
