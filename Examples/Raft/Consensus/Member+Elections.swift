import RunLoopKit

extension Member {
    /// Ends a timeout without a sign of a leader: this member becomes a candidate.
    mutating func timeOut() {
        store(.term(term + 1, vote: name))
        role = .candidate(votes: [])
        restartTimeout()
        askForVotes()
        take(voteOf: name)
    }

    /// Asks the members whose votes this candidate does not have.
    mutating func askForVotes() {
        guard case .candidate(let votes) = role else { return }
        for other in others where !votes.contains(other) {
            send(.requestVote(lastIndex: log.lastIndex, lastTerm: log.lastTerm), to: other)
        }
    }

    mutating func answer(_ candidate: String, whoseLogEndsAt lastIndex: Int, _ lastTerm: Int) {
        // A leader must have all committed entries, and a majority has each of them.
        let isUpToDate = (lastTerm, lastIndex) >= (log.lastTerm, log.lastIndex)
        RunLoop.sometimes("a vote was refused because of the log", if: !isUpToDate)
        let isGranted = isUpToDate && (stored.vote ?? candidate) == candidate
        if isGranted {
            if stored.vote == nil { store(.term(term, vote: candidate)) }
            restartTimeout()
        }
        send(.vote(isGranted: isGranted), to: candidate)
    }

    mutating func take(voteOf voter: String) {
        guard case .candidate(var votes) = role else { return }
        votes.insert(voter)
        role = .candidate(votes: votes)
        if votes.count >= majority { lead() }
    }

    private mutating func lead() {
        role = .leader(Leadership(over: others, first: log.lastIndex + 1))
        store(.entry(Entry(term: term, command: .nothing), at: log.lastIndex + 1))
        askFollowers()
        commitWhatMajorityHas()
    }
}
