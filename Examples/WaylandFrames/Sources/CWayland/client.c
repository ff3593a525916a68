#define _GNU_SOURCE
#include "CWayland.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

// In C, because libwayland keeps the addresses of the interfaces, and Swift knows only their values.
void *bind_global(struct wl_registry *registry, uint32_t name, const char *interface) {
    const struct wl_interface *known[] = {
        &wl_compositor_interface, &wl_shm_interface, &xdg_wm_base_interface, &wp_presentation_interface};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (!strcmp(interface, known[i]->name)) return wl_registry_bind(registry, name, known[i], 1);
    }
    return NULL;
}

int make_memory(size_t size) {
    int descriptor = memfd_create("window", MFD_CLOEXEC);
    if (descriptor < 0 || ftruncate(descriptor, size) == 0) return descriptor;
    close(descriptor);
    return -1;
}
