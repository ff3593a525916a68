/// Records or repeats the order in which the loops of a world take mail from other threads.
@_spi(Ports) public protocol MailOrder: Sendable {
    /// The calling thread's number as a sender.
    var sender: UInt32 { get }

    /// Notes that the calling thread has posted mail.
    ///
    /// - Parameter isRefused: whether the loop has ended.
    /// - Returns: the answer for the sender.
    func posted(isRefused: Bool) -> Bool

    /// Returns whether the loop finds mail where it looks for it. On the loop's thread.
    func finds(_ isThere: Bool) -> Bool

    /// Returns whether the mailbox is closed now, which requires that it is empty. On the loop's thread.
    func closes(_ isEmpty: Bool) -> Bool

    /// Returns the senders of the mail to take, which may not have come yet. On the loop's thread, which takes its
    /// mail.
    ///
    /// - Parameter waiting: the senders of the mail that has come.
    func takes(_ waiting: [UInt32]) -> [UInt32]

    /// Notes that the resting loop is about to be signalled. On the sender's thread.
    func endsRest()

    /// Waits for the signal that mail has come, because mail from `sender` is missing. On the loop's thread.
    func rest(until mailComes: Handoff, from sender: UInt32)
}
