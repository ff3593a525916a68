/// The order in which the loops of a world take mail from other threads: it is written down, or followed.
package protocol MailOrder: Sendable {
    /// The calling thread's number as a sender.
    var sender: UInt32 { get }

    /// The calling thread has posted something.
    ///
    /// - Parameter isRefused: whether the loop has ended.
    /// - Returns: whether the loop has ended, for the sender.
    func posted(isRefused: Bool) -> Bool

    /// On the loop's thread: whether the loop finds mail where it looks for it.
    func finds(_ isThere: Bool) -> Bool

    /// On the loop's thread: whether the mailbox is closed now, which it may be if it is empty.
    func closes(_ isEmpty: Bool) -> Bool

    /// On the loop's thread, which takes its mail.
    ///
    /// - Parameter waiting: the senders of the mail that has come.
    /// - Returns: the senders of the mail to take, which may not have come yet.
    func takes(_ waiting: [UInt32]) -> [UInt32]

    /// The loop, which rests, is about to get that signal. On the sender's thread.
    func endsRest()

    /// On the loop's thread: waits for the signal that mail has come, because that of a sender is missing.
    func rest(until mailComes: Handoff, from sender: UInt32)
}
