internal import CGTK
internal import DragReport
internal import Glibc
internal import RunLoopGLib
internal import RunLoopKit

/// A window with a slider, a list, and three labels: clocks in the default mode and in the common modes, and the frames
/// of display links. Used on the main thread; lives as long as the process.
final class DragWindow {
    private static let tracking: RunLoop.Mode = "tracking"

    private let loop = RunLoop.main
    private let glib: GLibContext
    private let window: UnsafeMutablePointer<GtkWidget>
    private let slider: UnsafeMutablePointer<GtkWidget>
    private let list: UnsafeMutablePointer<GtkWidget>
    private let frames = FrameSource()
    private var meter = FrameRateMeter()
    private let start: RunLoop.Instant

    private var isPressed = false
    private var isTracking = false
    /// The number of drags or frames that ends the program, and the path for pictures.
    private let drags: Int?
    private let mostFrames: Int?
    private let pictures: String?
    private(set) var report: DragReport

    init(drags: Int?, frames: Int?, pictures: String?) throws {
        (self.drags, mostFrames, self.pictures) = (drags, frames, pictures)
        report = DragReport(interval: .milliseconds(100), hasDrags: drags != nil)
        guard gtk_init_check() != 0 else { throw Failure.noDisplay }
        start = loop.now
        loop.addCommonMode(Self.tracking)
        glib = try GLibContext(on: loop)

        window = gtk_window_new()
        slider = gtk_scale_new_with_range(GTK_ORIENTATION_HORIZONTAL, 0, 100, 1)
        list = gtk_scrolled_window_new()
        let box = gtk_box_new(GTK_ORIENTATION_VERTICAL, 12)!
        let labels = (0..<3).map { _ in gtk_label_new("")! }
        for label in labels {
            gtk_widget_set_halign(label, GTK_ALIGN_START)
            gtk_box_append(drag_box(box), label)
        }
        gtk_widget_set_margin_start(box, 24)
        gtk_widget_set_margin_end(box, 24)
        gtk_widget_set_margin_top(box, 24)
        gtk_widget_set_margin_bottom(box, 24)
        gtk_box_append(drag_box(box), slider)
        let rows = gtk_box_new(GTK_ORIENTATION_VERTICAL, 6)!
        for number in 1...50 { gtk_box_append(drag_box(rows), gtk_label_new("line \(number)")) }
        gtk_scrolled_window_set_overlay_scrolling(drag_scrolled(list), 0)
        gtk_scrolled_window_set_child(drag_scrolled(list), rows)
        gtk_widget_set_vexpand(list, 1)
        gtk_box_append(drag_box(box), list)
        gtk_window_set_title(drag_window(window), "RunLoopKit")
        gtk_window_set_default_size(drag_window(window), 480, 400)
        gtk_window_set_child(drag_window(window), box)

        addTimers(labels)
        connect()
        gtk_window_present(drag_window(window))
    }

    /// Runs until the window is closed, or until a second after the last drag.
    func run() {
        loop.run(in: .default)
        frames.wantedHandler = nil
        glib.invalidate()
    }

    // MARK: Timers and display links

    private func addTimers(_ labels: [UnsafeMutablePointer<GtkWidget>]) {
        func clock(_ title: String) -> String {
            let tenths = Int((loop.now - start) / .milliseconds(100))
            return "\(title): \(tenths / 10).\(tenths % 10) s"
        }
        let usual = Timer(timeInterval: report.interval, repeats: true) { [unowned self] timer in
            report.usual.append(.init(of: timer, at: loop.now))
            gtk_label_set_text(drag_label(labels[0]), clock("default mode"))
        }
        let common = Timer(timeInterval: report.interval, repeats: true) { [unowned self] timer in
            report.common.append(.init(of: timer, at: loop.now))
            gtk_label_set_text(drag_label(labels[1]), clock("common modes"))
        }
        loop.add(usual, forMode: .default)
        loop.add(common, forMode: .common)

        let everyOther = DisplayLink(frames: frames) { [unowned self] _ in report.usualCalls.append(loop.now) }
        everyOther.preferredFramesPerSecond = 30
        everyOther.add(to: loop, forMode: .default)
        let every = DisplayLink(frames: frames) { [unowned self] link in
            report.commonCalls.append(loop.now)
            guard let rate = meter.frame(at: link.timestamp) else { return }
            let words = "\(rate), \(link.totalDroppedFrames) dropped"
            gtk_label_set_text(drag_label(labels[2]), words)
        }
        every.add(to: loop, forMode: .common)
    }

    // MARK: Signals of GTK

    private var pointer: gpointer { Unmanaged.passUnretained(self).toOpaque() }

    private func connect() {
        // The frames of the window's own clock.
        let tick: GtkTickCallback = { _, clock, data in
            Unmanaged<DragWindow>.fromOpaque(data!).takeUnretainedValue().frameBegan(clock!)
            return 1
        }
        gtk_widget_add_tick_callback(window, tick, pointer, nil)

        let event: @convention(c) (OpaquePointer, OpaquePointer, gpointer) -> gboolean = { _, event, data in
            let window = Unmanaged<DragWindow>.fromOpaque(data).takeUnretainedValue()
            switch gdk_event_get_event_type(event) {
            case GDK_BUTTON_PRESS, GDK_TOUCH_BEGIN: window.pressed()
            case GDK_BUTTON_RELEASE, GDK_TOUCH_END, GDK_TOUCH_CANCEL: window.released()
            default: break
            }
            return 0
        }
        for widget in [slider, list] {
            drag_connect(
                UnsafeMutableRawPointer(drag_capture(widget)), "event", unsafeBitCast(event, to: GCallback.self),
                pointer)
        }
        let close: @convention(c) (gpointer, gpointer) -> gboolean = { _, data in
            Unmanaged<DragWindow>.fromOpaque(data).takeUnretainedValue().loop.stop()
            return 1
        }
        drag_connect(window, "close-request", unsafeBitCast(close, to: GCallback.self), pointer)
    }

    private func frameBegan(_ clock: OpaquePointer) {
        // GDK counts microseconds on the loop's clock, too.
        let time = gdk_frame_clock_get_frame_time(clock)
        var interval = 0
        gdk_frame_clock_get_refresh_info(clock, time, &interval, nil)
        let date = RunLoop.Instant(nanoseconds: Int64(time) * 1000)
        if date > frames.timestamp { report.frames.append(loop.now) }
        let isUsual = (1000...1_000_000).contains(interval)
        frames.frameBegan(at: date, interval: isUsual ? .microseconds(interval) : nil)
        if report.frames.count == 10 { tellPlaces() }
        if report.frames.count == mostFrames { loop.stop() }
    }

    private func pressed() {
        guard !isPressed else { return }
        isPressed = true
        // Not here, within GTK's signal: the press still has to reach the slider.
        loop.perform(inModes: .common) { [unowned self] in track() }
    }

    private func released() {
        isPressed = false
        if isTracking { loop.stop() }
    }

    /// Runs the loop in the tracking mode while a button is pressed, as Apple's controls do.
    private func track() {
        guard isPressed, !isTracking else { return }
        isTracking = true
        let begin = loop.now
        if pictures != nil {
            loop.perform(afterDelay: .milliseconds(1500), inModes: [.common]) { [unowned self] in
                if isTracking { writePicture("during") }
            }
        }
        loop.run(in: Self.tracking)
        isTracking = false
        report.drags.append(.init(begin: begin, end: loop.now))
        guard let drags, report.drags.count == drags else { return }
        loop.perform(afterDelay: .seconds(1)) { [unowned self] in
            writePicture("after")
            loop.stop()
        }
    }

    // MARK: For the script

    /// Prints the places of the slider and the list's scroll bar, for a program that moves the pointer.
    private func tellPlaces() {
        guard drags != nil else { return }
        var (x, y) = (0.0, 0.0)
        gtk_native_get_surface_transform(gtk_widget_get_native(window), &x, &y)
        var places: [String] = []
        for widget in [slider, list] {
            var bounds = graphene_rect_t()
            guard gtk_widget_compute_bounds(widget, window, &bounds) != 0 else { continue }
            let (left, top) = (Double(bounds.origin.x) + x, Double(bounds.origin.y) + y)
            places.append("\(Int(left)) \(Int(top)) \(Int(bounds.size.width)) \(Int(bounds.size.height))")
        }
        print("places \(places.joined(separator: " "))")
        fflush(nil)
    }

    private func writePicture(_ name: String) {
        guard let pictures else { return }
        if drag_write_picture(window, "\(pictures)/\(name).png") == 0 { print("no picture \(name).png") }
    }
}

enum Failure: Error, CustomStringConvertible {
    case noDisplay

    var description: String { "there is no display; make gtk-demo starts an invisible one" }
}
