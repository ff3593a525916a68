// <features.h> comes first: it settles the feature macros before any libevent header can, so that `fd_set` has one
// definition here and in Swift's Glibc module.
#include <features.h>

#include <event2/event.h>
#include <event2/event_struct.h>
