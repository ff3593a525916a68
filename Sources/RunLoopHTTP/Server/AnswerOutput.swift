#if Adapters
internal import HTTPTypes
internal import NIOCore
internal import NIOHTTP1
internal import NIOHTTP2

/// The way of answers to the client: as bytes for a connection of HTTP/1.1, as parts for a stream of HTTP/2.
struct AnswerOutput {
    /// The connection of HTTP/1.1; `nil` for a stream of HTTP/2.
    let connection: ConnectionHandler?
    let context: ChannelHandlerContext

    func writeContinue() {
        if let connection {
            connection.output.writeContinue()
        } else {
            write(.head(HTTPResponseHead(version: .http2, status: .continue)))
        }
    }

    func writeHead(
        _ status: HTTPResponse.Status, _ fields: HTTPFields, isVersion10: Bool, _ framing: AnswerBytes.Framing,
        date: String
    ) {
        if let connection {
            connection.output.writeHead(status, fields, isVersion10: isVersion10, framing, date: date)
        } else {
            var headers = HTTPHeaders(fields)
            if let length = framing.length { headers.add(name: "Content-Length", value: String(length)) }
            if !headers.contains(name: "date") { headers.add(name: "Date", value: date) }
            let status = HTTPResponseStatus(statusCode: status.code, reasonPhrase: status.reasonPhrase)
            write(.head(HTTPResponseHead(version: .http2, status: status, headers: headers)))
        }
    }

    /// Writes a piece of a body, which is not empty.
    func write(_ bytes: ByteBuffer) {
        if let connection { connection.write(bytes) } else { write(.body(.byteBuffer(bytes))) }
    }

    func writeEnd(_ trailers: HTTPFields?) {
        if let connection {
            connection.output.writeEnd(trailers)
        } else {
            write(.end(trailers.map { HTTPHeaders($0) }))
        }
    }

    private func write(_ part: HTTPServerResponsePart) { context.write(NIOAny(part), promise: nil) }

    func flush() {
        if let connection { connection.flush() } else { context.flush() }
    }

    /// Flushes, and completes the future when the client's system has all that has been written.
    func flushAndWait() -> EventLoopFuture<Void> {
        let promise = context.eventLoop.makePromise(of: Void.self)
        if let connection {
            connection.flush(promise)
        } else {
            context.writeAndFlush(NIOAny(HTTPServerResponsePart.body(.byteBuffer(ByteBuffer()))), promise: promise)
        }
        return promise.futureResult
    }

    /// Closes a connection of HTTP/1.1 after what has been written.
    func close() {
        connection?.handOver()
        context.close(promise: nil)
    }

    /// Closes without the rest of an answer.
    func reset() {
        if connection == nil { resetStream(.internalError) } else { flush() }
        context.close(promise: nil)
    }

    /// Resets the stream of HTTP/2.
    func resetStream(_ code: NIOHTTP2.HTTP2ErrorCode) {
        let codec = try? context.pipeline.syncOperations.context(
            handlerType: HTTP2FramePayloadToHTTP1ServerCodec.self)
        codec?.writeAndFlush(NIOAny(HTTP2Frame.FramePayload.rstStream(code)), promise: nil)
    }
}
#endif
