import CWayland
import Glibc
import RunLoopKit

/// A window with two bars, drawn in memory that it shares with the compositor. The compositor reports when to draw the
/// next frame, which is a frame of ``frames``.
final class Window {
    let frames = FrameSource()
    /// Called after the links in each frame. The handler may run the loop.
    var frameHandler: (RunLoop.Instant) -> Void = { _ in }
    /// The places of the bars, from the left.
    var places = [0, 0]

    private static let (width, height) = (400, 120)
    private static let (white, black) = (UInt32(0xffff_ffff), UInt32(0xff20_2020))

    private let loop: RunLoop
    private let display: Display
    private let surface: OpaquePointer
    private var buffers: [Buffer] = []
    private var isConfigured = false
    private var isWaitingForFrame = false
    /// The time in the last callback.
    private var time: UInt32?
    private var interval: Duration?

    private struct Buffer {
        let proxy: OpaquePointer
        let pixels: UnsafeMutableBufferPointer<UInt32>
        /// `true` while the compositor reads the buffer.
        var isBusy = false
    }

    init(on display: Display, _ loop: RunLoop) {
        (self.display, self.loop) = (display, loop)
        surface = wl_compositor_create_surface(display.global("wl_compositor"))
        let shell = display.global("xdg_wm_base")
        xdg_wm_base_add_listener(shell, shellListener, nil)
        let xdgSurface = xdg_wm_base_get_xdg_surface(shell, surface)
        xdg_surface_add_listener(xdgSurface, surfaceListener, context)
        let toplevel = xdg_surface_get_toplevel(xdgSurface)
        xdg_toplevel_add_listener(toplevel, toplevelListener, nil)
        xdg_toplevel_set_title(toplevel, "RunLoopKit")
        makeBuffers()
        frames.wantedHandler = { [unowned self] _ in commit() }
        // The first commit has no buffer and asks for a size.
        wl_surface_commit(surface)
    }

    private var context: UnsafeMutableRawPointer { Unmanaged.passUnretained(self).toOpaque() }

    private static func of(_ context: UnsafeMutableRawPointer?) -> Window {
        Unmanaged.fromOpaque(context!).takeUnretainedValue()
    }

    // MARK: Frames

    /// Reacts to the compositor's request for the next frame, after it has shown the last commit.
    ///
    /// The time of a callback has no defined beginning, but it rises with the dates of the frames. So a frame's date is
    /// the previous frame's date plus the time between the two, or now if that is earlier, as it is after a late first
    /// callback.
    private func frameBegan(_ time: UInt32) {
        isWaitingForFrame = false
        let now = loop.now
        let date = self.time.map { min(now, frames.timestamp + .milliseconds(Int(time &- $0))) } ?? now
        self.time = time
        frames.frameBegan(at: date, interval: interval)
        commit()
        frameHandler(date)
    }

    private let frameListener = kept(
        wl_callback_listener { context, callback, time in
            wl_callback_destroy(callback)
            Window.of(context).frameBegan(time)
        })

    /// Receives the time between frames, which a `wl_surface.frame` callback does not report.
    private let feedbackListener = kept(
        wp_presentation_feedback_listener(
            sync_output: { _, _, _ in },
            presented: { context, feedback, _, _, _, refresh, _, _, _ in
                wp_presentation_feedback_destroy(feedback)
                // Zero if the display has no constant rate.
                guard (1_000_000...1_000_000_000).contains(refresh) else { return }
                Window.of(context).interval = .nanoseconds(Int(refresh))
            },
            discarded: { _, feedback in wp_presentation_feedback_destroy(feedback) }))

    /// Shows the bars, and asks for a callback in the next frame, as long as a link wants frames.
    private func commit() {
        guard isConfigured, frames.isWanted, !isWaitingForFrame else { return }
        if let free = buffers.firstIndex(where: { !$0.isBusy }) {
            draw(in: buffers[free].pixels)
            buffers[free].isBusy = true
            wl_surface_attach(surface, buffers[free].proxy, 0, 0)
            wl_surface_damage(surface, 0, 0, Int32(Self.width), Int32(Self.height))
        }
        wl_callback_add_listener(wl_surface_frame(surface), frameListener, context)
        let feedback = wp_presentation_feedback(display.global("wp_presentation"), surface)
        wp_presentation_feedback_add_listener(feedback, feedbackListener, context)
        isWaitingForFrame = true
        wl_surface_commit(surface)
    }

    // MARK: The window

    private let shellListener = kept(
        xdg_wm_base_listener { _, shell, serial in xdg_wm_base_pong(shell, serial) })

    private let surfaceListener = kept(
        xdg_surface_listener { context, surface, serial in
            xdg_surface_ack_configure(surface, serial)
            let window = Window.of(context)
            window.isConfigured = true
            window.commit()
        })

    /// The listener for the events of the first version; later versions have more.
    private let toplevelListener = {
        var listener = xdg_toplevel_listener()
        listener.configure = { _, _, _, _, _ in }
        listener.close = { _, _ in fail("the window was closed") }
        return kept(listener)
    }()

    // MARK: Pixels

    /// Makes two buffers, so that one can be drawn in while the compositor reads the other.
    private func makeBuffers() {
        let (count, size) = (2, Self.width * Self.height * 4)
        let descriptor = make_memory(count * size)
        let memory = mmap(nil, count * size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0)!
        guard memory != MAP_FAILED else { fail("there is no memory (errno \(errno))") }
        let pool = wl_shm_create_pool(display.global("wl_shm"), descriptor, Int32(count * size))
        close(descriptor)
        for number in 0..<count {
            let proxy = wl_shm_pool_create_buffer(
                pool, Int32(number * size), Int32(Self.width), Int32(Self.height), Int32(Self.width * 4),
                WL_SHM_FORMAT_XRGB8888.rawValue)!
            wl_buffer_add_listener(proxy, bufferListener, context)
            let pixels = (memory + number * size).bindMemory(to: UInt32.self, capacity: size / 4)
            buffers.append(Buffer(proxy: proxy, pixels: UnsafeMutableBufferPointer(start: pixels, count: size / 4)))
        }
        wl_shm_pool_destroy(pool)
    }

    private let bufferListener = kept(
        wl_buffer_listener { context, proxy in
            let window = Window.of(context)
            window.buffers[window.buffers.firstIndex { $0.proxy == proxy }!].isBusy = false
        })

    private func draw(in pixels: UnsafeMutableBufferPointer<UInt32>) {
        pixels.update(repeating: Self.white)
        for row in 0..<Self.height {
            let begin = row * Self.width + places[row * places.count / Self.height] % (Self.width - 20)
            for pixel in begin..<(begin + 20) { pixels[pixel] = Self.black }
        }
    }
}
