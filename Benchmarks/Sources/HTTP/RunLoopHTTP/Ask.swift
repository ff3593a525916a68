import NIOCore
import RunLoopHTTP
import RunLoopKit

// In a file of its own, because closures in main.swift belong to the main actor.
func ask() throws {
    let (meter, loop) = (Meter(), RunLoop.main)
    try loop.run {
        var options = HTTPClient.Options()
        options.connectionsPerOrigin = meter.connections
        let client = HTTPClient(on: loop, options: options)
        let request = try HTTPRequest(meter.sent == 0 ? .get : .post, meter.address)
        let body = HTTPClient.RequestBody.bytes(ByteBuffer(repeating: 120, count: meter.sent))
        var times: [Int] = []
        try await loop.withTasks { tasks in
            for _ in 0..<meter.connections {
                tasks.start {
                    times += try await meter.times {
                        let answer = try await client.send(request, body: meter.sent == 0 ? .none : body)
                        var count = 0
                        for try await bytes in answer.body { count += bytes.readableBytes }
                        return count
                    }
                }
            }
        }
        meter.report(times)
        client.close()
    }
}
