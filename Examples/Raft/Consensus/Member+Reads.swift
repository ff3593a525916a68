extension Member {
    /// Begins a read of the present state, without an entry in the log, if this member leads.
    ///
    /// - Returns: `true` if this member leads. The read will then be served or refused.
    mutating func read(_ number: Int) -> Bool {
        guard let leadership else { return false }
        askFollowers()
        // A leader's first entry commits the entries of earlier leaders, which clients may know of.
        let read = Leadership.Read(
            number: number, round: leadership.round + 1, index: max(commit, leadership.first))
        self.leadership!.reads.append(read)
        serveReads()
        return true
    }

    /// Serves the reads for which a majority has confirmed that this member leads.
    mutating func serveReads() {
        guard let leadership else { return }
        let confirmed = leadership.reached(by: majority, own: leadership.round) { $0.round }
        let commit = commit
        func mayBeServed(_ read: Leadership.Read) -> Bool { read.round <= confirmed && read.index <= commit }
        for read in leadership.reads where mayBeServed(read) { act(.serve(read: read.number)) }
        self.leadership!.reads.removeAll(where: mayBeServed)
    }
}
