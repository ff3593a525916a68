import Hummingbird

// A service of Hummingbird, as its own documentation begins one. It knows nothing of simulations.

actor Counter {
    private var count = 0

    func next() -> Int {
        count += 1
        return count
    }
}

@main
enum Service {
    static func main() async throws {
        let counter = Counter()
        let router = Router()
        router.get("/count") { _, _ in "\(await counter.next())" }
        router.get("/slow") { _, _ in
            try await Task.sleep(for: .seconds(20))
            return "late"
        }
        router.post("/echo") { request, _ in
            Response(status: .ok, body: ResponseBody(byteBuffer: try await request.body.collect(upTo: 1 << 20)))
        }
        let configuration = ApplicationConfiguration(address: .hostname("0.0.0.0", port: 80))
        try await Application(router: router, configuration: configuration).run()
    }
}
