#include <gtk/gtk.h>

// Casts and macros that Swift cannot see.

static inline GtkWindow *drag_window(GtkWidget *widget) { return GTK_WINDOW(widget); }
static inline GtkBox *drag_box(GtkWidget *widget) { return GTK_BOX(widget); }
static inline GtkLabel *drag_label(GtkWidget *widget) { return GTK_LABEL(widget); }
static inline GtkScale *drag_scale(GtkWidget *widget) { return GTK_SCALE(widget); }
static inline GtkScrolledWindow *drag_scrolled(GtkWidget *widget) { return GTK_SCROLLED_WINDOW(widget); }

static inline void drag_connect(gpointer object, const char *signal, GCallback callback, gpointer data) {
    g_signal_connect_data(object, signal, callback, data, NULL, (GConnectFlags)0);
}

static inline GtkEventController *drag_capture(GtkWidget *widget) {
    GtkEventController *controller = gtk_event_controller_legacy_new();
    gtk_event_controller_set_propagation_phase(controller, GTK_PHASE_CAPTURE);
    gtk_widget_add_controller(widget, controller);
    return controller;
}

// Writes the window as it looks now.
static inline gboolean drag_write_picture(GtkWidget *window, const char *path) {
    GtkNative *native = gtk_widget_get_native(window);
    GskRenderer *renderer = native ? gtk_native_get_renderer(native) : NULL;
    if (!renderer) return FALSE;
    GdkPaintable *paintable = gtk_widget_paintable_new(window);
    GtkSnapshot *snapshot = gtk_snapshot_new();
    gdk_paintable_snapshot(paintable, snapshot, gtk_widget_get_width(window), gtk_widget_get_height(window));
    GskRenderNode *node = gtk_snapshot_free_to_node(snapshot);
    gboolean written = FALSE;
    if (node) {
        GdkTexture *texture = gsk_renderer_render_texture(renderer, node, NULL);
        written = gdk_texture_save_to_png(texture, path);
        g_object_unref(texture);
        gsk_render_node_unref(node);
    }
    g_object_unref(paintable);
    return written;
}
