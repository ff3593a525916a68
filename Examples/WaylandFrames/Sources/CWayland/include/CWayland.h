#pragma once
#include <wayland-client.h>

#include "../generated/presentation-time.h"
#include "../generated/xdg-shell.h"

// Binds a global that the client uses, in its first version; null for all others.
void *bind_global(struct wl_registry *registry, uint32_t name, const char *interface);

// A descriptor of `size` bytes of memory, or -1.
int make_memory(size_t size);
