#if Adapters
internal import HTTPTypes

extension HTTPExchange {
    /// The limit whose time the present phase has; `nil` for none.
    ///
    /// - Parameter isWritable: whether the client reads fast enough.
    func phase(_ isWritable: @autoclosure () -> Bool) -> HTTPServer.Limit? {
        switch answer {
        case .awaited: waitsForInput ? .stallTime : .answerTime
        // A program that has nothing to write for the moment may take its time.
        case .body: isWritable() ? nil : .stallTime
        case .ended: .stallTime
        }
    }

    /// True if the client receives the body of the answer.
    var sendsBody: Bool { request.method != .head && status?.hasBody ?? false }
}

extension HTTPResponse.Status {
    /// True if an answer with this status may have a body.
    var hasBody: Bool { code != 204 && code != 304 }
}
#endif
