internal import RunLoopCore

extension Console: Opaque {}
