extension Signal {
    /// Makes the process ignore a signal. Children started with plain `exec` also ignore it; children of
    /// ``ChildProcess`` start with the defaults.
    ///
    /// Sources for the signal still receive it; the process ignores it once they are gone. Any thread.
    ///
    /// - Throws: ``SignalError`` if the signal cannot be ignored.
    public static func ignore(_ signal: Signal) throws(SignalError) {
        try SignalError.check(signal)
        if WorldSystem.current.ignore(signal: signal.rawValue) != 0 { throw .noSuchSignal(signal.rawValue) }
    }
}
