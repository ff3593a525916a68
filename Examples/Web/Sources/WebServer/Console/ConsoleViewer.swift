internal import Logging
internal import RunLoopHTTP
internal import RunLoopKit
internal import RunLoopUnix

/// Sends the snapshots of the daemon's console to a page, once the page has sent the key.
struct ConsoleViewer {
    let site: Site

    init(_ site: Site) {
        self.site = site
    }

    func serve(_ page: WebSocket, of request: HTTPServer.Request) async throws {
        let loop = request.loop
        let first = try? await loop.withTimeout(site.limits.http.headTime) { try await page.next() }
        guard let access = site.consoleAccess, case .text(let key)? = first, access.admits(key) else {
            site.log.warning("\(request.peer) has no key for the console")
            return page.close(1008)
        }
        defer { page.close(1001) }
        var limits = Connection.Limits()
        limits.maximumInput = 32 << 20
        let console = try await Connection.connect(to: access.socket, on: loop, limits: limits)
        defer { console.close() }
        for try await line in console.lines(upTo: 16 << 20) where page.isWritable {
            // A page that does not read misses snapshots.
            page.write(.text(line))
        }
    }
}
