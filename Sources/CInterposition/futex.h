#include <stdint.h>
#include <time.h>

/// `syscall(SYS_futex, …)`. A thread of a simulation waits in virtual time, and for other threads of the simulation.
long rlk_futex(uint32_t *word, int operation, uint32_t value, const struct timespec *time, uint32_t *word2, uint32_t value3);
