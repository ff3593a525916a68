#ifndef CSHIMS_SYMBOLS_H
#define CSHIMS_SYMBOLS_H

#include <stdint.h>

/// Returns the name of the program's function at an address, as the linker knows it; NULL for functions of shared
/// libraries, and in a program without a symbol table. Takes milliseconds in a large program, where a backtrace of
/// Swift's takes seconds. The name stays forever.
const char *rlk_find_function(uintptr_t address);

#endif
