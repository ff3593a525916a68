#include <dlfcn.h>
#include <cshims.h>
#include <stdatomic.h>

/// Ends the program, because a function of the C library cannot be found.
_Noreturn void rlk_end_without(const char *function);

/// Defines `real_NAME()`: the next definition of a function, which is a sanitizer's or the library's.
// The library keeps old versions of its conditions. Today's began with 2.3.2 on x86-64; elsewhere there is one version.
#define REAL(result, name, ...)                                                                                                \
    extern result __interceptor_##name(__VA_ARGS__) __attribute__((weak));                                                     \
    static result (*real_##name(void))(__VA_ARGS__) {                                                                          \
        static _Atomic(void *) found;                                                                                          \
        void *function = atomic_load_explicit(&found, memory_order_relaxed);                                                   \
        if (!function) {                                                                                                       \
            function = (void *)__interceptor_##name;                                                                           \
            if (!function) function = dlvsym(RTLD_NEXT, #name, "GLIBC_2.3.2");                                                 \
            if (!function) function = dlsym(RTLD_NEXT, #name);                                                                 \
            if (!function) rlk_end_without(#name);                                                                             \
            atomic_store_explicit(&found, function, memory_order_relaxed);                                                     \
        }                                                                                                                      \
        return (result(*)(__VA_ARGS__))function;                                                                               \
    }

