// A client of async-http-client, on one event loop of SwiftNIO's:
// `AskAsyncHTTPClient PORT get|post|stream CONNECTIONS SECONDS`.
import AsyncHTTPClient
import NIOCore
import NIOPosix

let meter = Meter()
var configuration = HTTPClient.Configuration()
configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = meter.connections
let client = HTTPClient(
    eventLoopGroup: MultiThreadedEventLoopGroup(numberOfThreads: 1), configuration: configuration)
let request = {
    var request = HTTPClientRequest(url: meter.address)
    if meter.sent > 0 {
        request.method = .POST
        request.body = .bytes(ByteBuffer(repeating: 120, count: meter.sent))
    }
    return request
}()
let times = try await withThrowingTaskGroup { tasks in
    for _ in 0..<meter.connections {
        tasks.addTask { [meter, client, request] in
            try await meter.times {
                let answer = try await client.execute(request, timeout: .seconds(30))
                var count = 0
                for try await bytes in answer.body { count += bytes.readableBytes }
                return count
            }
        }
    }
    var times: [Int] = []
    for try await some in tasks { times += some }
    return times
}
meter.report(times)
try await client.shutdown()
