internal import RunLoopCore

extension Countdown: Opaque {}
extension TimerRegistry: Opaque {}
