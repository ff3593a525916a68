import AsyncHTTPClient
import Glibc
import NIOCore
import RunLoopKit
import StateServer

func program(on loop: RunLoop) throws {
    let station = Station()
    station.readings = 3
    let thread = pthread_self()
    try loop.run {
        let server = try await serve(station, on: loop)
        let request = HTTPClientRequest(url: "http://127.0.0.1:\(server.localAddress!.port!)/")
        let response = try await HTTPClient.shared.execute(request, timeout: .seconds(10))
        let body = try await response.body.collect(upTo: 1024)
        print(response.status, String(buffer: body), terminator: "")
        try await server.close().get()
        print("still on the loop's thread:", pthread_self() == thread)
    }
}

try program(on: .current)
