import CLibuv
import RunLoopKit

/// libuv's loop of the calling thread, with a guest.
final class LibuvHost: Host {
    let guest: RunLoop.Guest
    let name = "libuv"
    private let loop = uv_default_loop()!
    private let poll = UnsafeMutablePointer<uv_poll_t>.allocate(capacity: 1)
    private let before = UnsafeMutablePointer<uv_prepare_t>.allocate(capacity: 1)
    private var mode = RunLoop.Mode.default
    private var result = RunLoop.RunResult.timedOut

    init(_ guest: RunLoop.Guest) throws {
        self.guest = guest
        uv_poll_init(loop, poll, try guest.fileDescriptor)
        uv_prepare_init(loop, before)
        let this = Unmanaged.passUnretained(self).toOpaque()
        poll.pointee.data = this
        before.pointee.data = this
        uv_poll_start(poll, Int32(UV_READABLE.rawValue)) { poll, _, _ in
            let this = Unmanaged<LibuvHost>.fromOpaque(poll!.pointee.data).takeUnretainedValue()
            this.result = this.guest.run(in: this.mode)
        }
        uv_prepare_start(before) { before in
            let this = Unmanaged<LibuvHost>.fromOpaque(before!.pointee.data).takeUnretainedValue()
            this.guest.prepare(in: this.mode)
        }
    }

    func run(in mode: RunLoop.Mode) -> RunLoop.RunResult {
        (self.mode, result) = (mode, .timedOut)
        while result == .timedOut { uv_run(loop, UV_RUN_ONCE) }
        return result
    }
}
