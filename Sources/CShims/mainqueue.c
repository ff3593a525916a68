#include "cshims.h"

#include <stddef.h>
#include <unistd.h>

// libdispatch exports these for CoreFoundation, which serves the main queue in the same way. Weak, because a program
// without tasks need not load libdispatch.
__attribute__((weak)) extern int _dispatch_get_main_queue_handle_4CF(void);
__attribute__((weak)) extern void _dispatch_main_queue_callback_4CF(void *message);

int rlk_main_queue_descriptor(void) {
    if (_dispatch_get_main_queue_handle_4CF == NULL || _dispatch_main_queue_callback_4CF == NULL) return -1;
    return _dispatch_get_main_queue_handle_4CF();
}

void rlk_drain_main_queue(void) {
    // The descriptor stays readable until it is read.
    uint64_t count;
    while (read(_dispatch_get_main_queue_handle_4CF(), &count, sizeof count) > 0) {}
    _dispatch_main_queue_callback_4CF(NULL);
}
