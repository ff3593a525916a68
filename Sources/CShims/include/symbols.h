#ifndef CSHIMS_SYMBOLS_H
#define CSHIMS_SYMBOLS_H

#include <stdint.h>

/// The function of the program at an address, as the linker knows it; NULL for those of shared libraries, and in a program
/// without a table of symbols. It takes milliseconds in a large program, where a backtrace of Swift's takes seconds. The name
/// stays for ever.
const char *rlk_find_function(uintptr_t address);

#endif
