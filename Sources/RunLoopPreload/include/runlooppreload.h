#ifndef RUNLOOPPRELOAD_H
#define RUNLOOPPRELOAD_H

// Has no functions for others: a program is started with this library before all others.

#endif
