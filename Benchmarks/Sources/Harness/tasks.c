// Swift concurrency; the workloads are in the target Tasks.
#include "measure.h"
#include <stdio.h>

void stop_loop(void) { peer->stop(); }

void tasks(uint64_t unused) {
    (void)unused;
    if (!peer->tasks(workload, size, delays)) {
        puts("not applicable");
        return;
    }
    peer->run();
    if (peer->report) peer->report();
}
