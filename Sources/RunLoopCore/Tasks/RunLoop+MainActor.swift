internal import CShims
internal import Glibc

extension RunLoop {
    /// Has the main thread's loop run the jobs of the main actor, and the work sent to Dispatch's main queue, while it
    /// runs in one of `modes`.
    ///
    /// ```swift
    /// RunLoop.main.serveMainActor()
    /// Task { @MainActor in … }
    /// RunLoop.main.run()
    /// ```
    ///
    /// If no loop serves the main actor, such jobs wait for as long as the loop has the thread; the loop says so once,
    /// on standard error. With this call they keep the modes from being empty, as a source does. A job of the main
    /// actor that runs the loop nested holds back the others until that run has ended. Harmless when repeated: a
    /// further call adds modes. On the main thread; also for the loop of a simulation there.
    ///
    /// CoreFoundation's main loop serves the main queue in the same way.
    ///
    /// - Returns: the source that serves the jobs. Invalidate it to end the service.
    @discardableResult
    public func serveMainActor(
        inModes modes: Modes = .common, file: StaticString = #fileID, line: UInt32 = #line
    ) -> DescriptorSource {
        require(
            rlk_is_main_thread() != 0,
            "only a loop of the main thread can serve the main actor; call it on RunLoop.main")
        let source = mainActorSource(Origin(file: file, line: line), keepsModesAlive: true)
        do {
            try add(source, forMode: modes)
        } catch {
            fatalError("libdispatch's descriptor of the main queue cannot be watched: \(error)")
        }
        return source
    }

    /// Has the loop of the main thread run its tasks that are isolated to the main actor, if nothing else does. For code that
    /// takes an asynchronous closure and calls it later in a task: a closure that is made on the main actor, as in
    /// `main.swift`, is isolated to it. On the loop's thread.
    @_spi(Ports) public func serveMainActor(forTasksIn modes: Modes) {
        guard rlk_is_main_thread() != 0 else { return }
        // Not a task's place: the source serves others as well. If it cannot be watched, tasks wait.
        try? add(mainActorSource(Origin(), keepsModesAlive: false), forMode: modes)
    }

    /// Indicates whether a job of the main actor is on the stack, which holds back the others.
    var isServingMainActor: Bool { self[mainActors]?.isCalling ?? false }

    /// Returns the source that serves the main actor. A source made for a task gives way to one that keeps modes alive.
    private func mainActorSource(_ origin: Origin, keepsModesAlive: Bool) -> DescriptorSource {
        self[unservedMainActors]?.invalidate()
        self[unservedMainActors] = nil
        if let source = self[mainActors], source.isValid {
            if source.keepsModesAlive || !keepsModesAlive { return source }
            source.invalidate()
        }
        let descriptor = rlk_main_queue_descriptor()
        require(
            descriptor >= 0 || errno != ENOSYS, "libdispatch is not linked; the main actor has no jobs without it")
        if descriptor < 0 { endProcess(.last("make a descriptor for the main queue")) }
        let source = DescriptorSource(fileDescriptor: descriptor, events: .readable, origin: origin) { _, _ in
            rlk_drain_main_queue()
        }
        source.name = "main actor"
        source.keepsModesAlive = keepsModesAlive
        self[mainActors] = source
        return source
    }

    /// Watches for jobs of the main actor that no loop runs, and reports them once, on standard error.
    package func watchForUnservedMainActor() {
        let descriptor = rlk_main_queue_descriptor()
        guard descriptor >= 0 else { return }
        let source = DescriptorSource(fileDescriptor: descriptor, events: .readable) { [unowned self] source, _ in
            tellOfUnservedMainActor(source)
        }
        source.name = "main actor, not served"
        source.keepsModesAlive = false
        self[unservedMainActors] = source
        // If the source cannot be watched, nothing is reported.
        try? add(source, forMode: .every)
    }

    /// Checks whether jobs of the main actor wait. A run in an empty mode, which waits for no descriptor, calls this.
    func lookForUnservedMainActor() {
        guard let source = self[unservedMainActors], source.isValid else { return }
        var queue = pollfd(fd: source.fileDescriptor, events: Int16(POLLIN), revents: 0)
        if Glibc.poll(&queue, 1, 0) == 1 { tellOfUnservedMainActor(source) }
    }

    private func tellOfUnservedMainActor(_ source: DescriptorSource) {
        source.invalidate()
        // The host may serve the main queue.
        guard !isWatched(.uses) else { return }
        warn(
            "jobs wait for the main actor, and the main thread's loop does not run them; "
                + "call RunLoop.main.serveMainActor() before you run it")
    }
}

private let mainActors = RunLoop.Local<DescriptorSource?> { _ in nil }
private let unservedMainActors = RunLoop.Local<DescriptorSource?> { _ in nil }
