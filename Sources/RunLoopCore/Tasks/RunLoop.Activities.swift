extension RunLoop {
    /// Returns the loop's activities from now on, for a task: the points of its runs at which an ``Observer`` is
    /// called.
    ///
    /// ```swift
    /// let drags = loop.activities(of: [.entry, .exit], inModes: .tracking)
    /// loop.task {
    ///     for try await batch in drags {
    ///         for event in batch.events { print(event) }  // for example: entry in tracking at 5.000000000
    ///     }
    /// }
    /// ```
    ///
    /// The activities come from an observer, which the loop has as long as the sequence exists. Like every observer, it
    /// keeps neither a mode from being empty nor the loop awake. A task's reaction to an activity may cause passes, and
    /// these have activities, too. So an element is a batch, and a task that awaits the next one gets it when the loop
    /// has slept or made two passes since. The sequence never keeps the loop from sleeping: activities before a sleep
    /// are delivered after it. On the loop's thread; O(number of observers), and O(1) for each activity.
    ///
    /// - Parameters:
    ///   - activities: the activities to deliver.
    ///   - modes: the modes whose runs are observed. The default is the common modes.
    ///   - limit: the greatest number of activities kept until a task takes them, at least 1.
    /// - Precondition: neither `activities` nor `modes` is empty.
    public func activities(
        of activities: Activity, inModes modes: Modes = .common, bufferingOldest limit: Int = 1024,
        file: StaticString = #fileID, line: UInt32 = #line
    ) -> Activities {
        require(!activities.isEmpty, "a sequence of activities needs at least one; choose some, or all")
        require(!modes.isEmpty, "activities need a mode; without any, none would be delivered")
        require(limit > 0, "at least one activity is kept, not \(limit)")
        return Activities(activities, of: self, modes, limit, file: file, line: line)
    }

    /// A loop's activities, made by ``RunLoop/activities(of:inModes:bufferingOldest:file:line:)``. Each element holds
    /// the activities since the last one.
    ///
    /// A cancelled wait takes nothing. An iteration throws `CancellationError`, or ``WaitError`` if another task waits
    /// or if the loop has ended and all kept activities have been taken; it does not end otherwise.
    ///
    /// The sequence belongs to the loop's thread and is not `Sendable`.
    public final class Activities: AsyncSequence {
        private let observer: Observer
        private let record: Record

        fileprivate init(
            _ chosen: Activity, of loop: RunLoop, _ modes: Modes, _ limit: Int, file: StaticString, line: UInt32
        ) {
            let record = Record(limit, loop.remote)
            self.record = record
            observer = Observer(
                activities: chosen.union([.beforeTimers, .afterWaiting]),
                handler: { [unowned loop] _, activity in
                    let mode = loop.currentMode!
                    if chosen.contains(activity) && modes.contain(mode, isCommon: loop.modeTable.common.contains(mode))
                    {
                        record.keep(Event(activity: activity, mode: mode, date: loop.now))
                    }
                    record.tell(after: activity)
                }, file: file, line: line)
            observer.invalidationHandler = { record.end() }
            // After a run in one of the modes the loop may run in another.
            loop.add(observer, forMode: .every)
        }

        deinit {
            observer.invalidationHandler = nil
            observer.invalidate()
        }

        /// A point of a run. A value and `Sendable`.
        public struct Event: Sendable, Hashable, CustomStringConvertible {
            /// The activity of the point.
            public let activity: Activity
            /// The mode of the run.
            public let mode: Mode
            /// The time of the event.
            public let date: Instant

            /// The event in words, for example `entry in tracking at 5.000000000`.
            public var description: String { "\(activity) in \(mode) at \(date)" }
        }

        /// The activities since the last element. A value and `Sendable`.
        public struct Element: Sendable, Hashable {
            /// The kept activities, in order; at least one.
            public let events: [Event]
            /// The number of activities that came after these and were lost, because the limit of kept ones was
            /// reached.
            public let missed: Int
        }

        /// The object that the observer's handler keeps, so that it does not keep the sequence.
        private final class Record: TaskWait, @unchecked Sendable {
            // Unchecked as in `TaskWait`.
            private let limit: Int
            private var events: [Event] = []
            private var missed = 0
            /// The number of passes begun since the task began to wait; two as soon as the loop has slept.
            private var passes = 0

            init(_ limit: Int, _ remote: Remote) {
                self.limit = limit
                super.init(remote)
            }

            override var purpose: String? { "waits for a point of the loop's run" }

            func keep(_ event: Event) {
                assert(events.count <= limit, "more activities are kept than the limit allows")
                if events.count < limit { events.append(event) } else { missed += 1 }
            }

            override func begin(in loop: RunLoop) {
                passes = 0
            }

            /// Ends the wait, unless the loop may be awake only because the task received the last activities.
            func tell(after activity: Activity) {
                if activity == .beforeTimers { passes += 1 }
                if activity == .afterWaiting { passes = 2 }
                if isWaiting && passes >= 2 && activity != .beforeWaiting && !events.isEmpty { end() }
            }

            func take() -> Element? {
                guard !events.isEmpty else { return nil }
                defer { (events, missed) = ([], 0) }
                return Element(events: events, missed: missed)
            }
        }

        /// Creates an iteration. Each activity goes to the iteration that asks first.
        public func makeAsyncIterator() -> TaskSequence<Element> { TaskSequence { try await self.next() } }

        private nonisolated(nonsending) func next() async throws -> Element {
            // The end of the loop invalidates the observer.
            if observer.isValid {
                try await record.admit(for: "activities of a loop")
                try await record.wait()
            }
            guard let element = record.take() else { throw await record.remote.endErrorAfterTurn() }
            return element
        }
    }
}

@available(*, unavailable, message: "activities belong to the loop's thread")
extension RunLoop.Activities: Sendable {}
