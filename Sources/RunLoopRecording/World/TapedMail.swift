@_spi(Ports) internal import RunLoopCore

/// Wakes a real driver, and gives its loop the order of mail.
struct TapedWaker: Waker {
    /// The real waker; `nil` in a replay.
    let real: (any Waker)?
    let mail: TapedMail

    func wake() { real?.wake() }

    var now: RunLoop.Instant { mail.tapes.now }

    var mailOrder: (any MailOrder)? { mail }
}

/// The order of mail, on the tapes of the threads that post and take it.
struct TapedMail: MailOrder {
    /// The sender number of mail from a thread that has no tape.
    static let foreign: UInt32 = .max

    let tapes: Tapes
    /// The number of the thread that takes the mail.
    let receiver: UInt32

    var sender: UInt32 { Tape.current?.number ?? Self.foreign }

    func posted(isRefused: Bool) -> Bool { Tape.current?.posted(isRefused: isRefused) ?? isRefused }

    // On the loop's thread, which has a tape.
    func finds(_ isThere: Bool) -> Bool { Tape.current!.finds(isThere) }
    func closes(_ isEmpty: Bool) -> Bool { Tape.current!.decides(isEmpty) }
    func takes(_ waiting: [UInt32]) -> [UInt32] { Tape.current!.takes(waiting) }

    func endsRest() { tapes.replay?.turns.comesBack(receiver) }

    func rest(until mailComes: Handoff, from sender: UInt32) {
        guard let tape = Tape.current as? ReplayingTape else { return mailComes.wait() }
        let replay = tapes.replay!
        replay.turns.goesAway(tape.number)
        let name = sender == Self.foreign ? "a thread that is not part of the record" : "thread \(sender)"
        replay.rest(until: mailComes, from: name, for: tape.name, tape.event)
    }
}
