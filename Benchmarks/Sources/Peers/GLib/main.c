// GLib's main loop.
#include "peer.h"
#include <glib-unix.h>
#include <glib.h>
#include <stdlib.h>

static GMainContext *context;
static GMainLoop *loop;

static void start(const char *form, bool threads) {
    (void)form, (void)threads;
    context = g_main_context_default();
    loop = g_main_loop_new(context, FALSE);
}

static void run(void) { g_main_loop_run(loop); }
static void stop(void) { g_main_loop_quit(loop); }
static void pass(void) { g_main_context_iteration(context, FALSE); }

static gboolean fired(gpointer argument) {
    harness_fired((size_t)argument);
    return G_SOURCE_REMOVE;
}

static Handle add(uint64_t delay, size_t i) {
    return (Handle)(size_t)g_timeout_add((guint)(delay / 1000000), fired, (gpointer)i);
}
static void cancel(Handle handle) { g_source_remove((guint)(size_t)handle); }

static void move(Handle handle, uint64_t delay, size_t i) {
    (void)i;
    // Found by its id: the user of `g_timeout_add` has only the id.
    GSource *source = g_main_context_find_source_by_id(context, (guint)(size_t)handle);
    g_source_set_ready_time(source, g_get_monotonic_time() + (gint64)(delay / 1000));
}

static gboolean ticked(gpointer argument) {
    harness_fired((size_t)argument);
    return G_SOURCE_CONTINUE;
}
static Handle add_repeating(uint64_t period, size_t i) {
    return (Handle)(size_t)g_timeout_add((guint)(period / 1000000), ticked, (gpointer)i);
}

typedef struct {
    Task task;
    void *argument;
} Posted;
static gboolean run_task(gpointer argument) {
    Posted *posted = argument;
    posted->task(posted->argument);
    return G_SOURCE_REMOVE;
}
static void post(Task task, void *argument) {
    Posted *posted = malloc(sizeof *posted);
    *posted = (Posted){task, argument};
    g_idle_add_full(G_PRIORITY_DEFAULT, run_task, posted, free);
}

static gboolean readable(gint descriptor, GIOCondition condition, gpointer argument) {
    (void)condition;
    harness_readable(descriptor, (size_t)argument);
    return G_SOURCE_CONTINUE;
}
static void watch(int descriptor, size_t i) { g_unix_fd_add(descriptor, G_IO_IN, readable, (gpointer)i); }

int main(int argc, char **argv) {
    Peer peer = {
        .resolution = 1000000, .start = start, .run = run, .stop = stop, .pass = pass,
        .add = add, .cancel = cancel, .rearm = move, .add_repeating = add_repeating, .post = post, .watch = watch,
    };
    return harness_main(argc, argv, &peer);
}
