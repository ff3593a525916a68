#ifndef CSHIMS_SYMBOLS_H
#define CSHIMS_SYMBOLS_H

#include <stdint.h>

/// Returns the name of the program's function at an address, as the linker knows it; NULL for functions of shared
/// libraries, and in a program without a symbol table. Takes milliseconds in a large program, where a backtrace of
/// Swift's takes seconds. The name stays forever.
const char *rlk_find_function(uintptr_t address);

/// Returns the name of the function at an address of a program's file, in words if it is one of Swift's; NULL in the same
/// cases. The caller frees it.
char *rlk_describe_function_in(const char *path, uintptr_t address);

#endif
