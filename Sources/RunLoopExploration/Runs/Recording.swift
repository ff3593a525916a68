/// The record to make of a run, besides its departures.
enum Recording: String {
    case none
    /// A picture of the last events.
    case picture
    /// A picture, and a trace of all events and choices.
    case trace
}
