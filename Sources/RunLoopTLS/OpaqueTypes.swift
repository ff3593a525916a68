internal import RunLoopCore

extension TLSClientContext: Opaque {}
extension TLSServerContext: Opaque {}
extension TLSSession: Opaque {}
