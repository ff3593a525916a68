// The harness that measures every peer.
#include "measure.h"
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

Peer *peer;
size_t size;
const char *workload;

void (*when_fired)(size_t i);
void harness_fired(size_t i) { when_fired(i); }

static const struct {
    const char *name;
    // The place of the primitive that not every peer has.
    size_t needs;
    // The range of the timers' delays or periods in ns.
    uint64_t low, high;
    void (*run)(uint64_t count);
    bool has_threads;
} workloads[] = {
    {"churn", offsetof(Peer, add), 60000000000, 120000000000, churn, false},
    {"embed", offsetof(Peer, embed_add), 60000000000, 120000000000, churn_embedded, false},
    {"common", offsetof(Peer, add_common), 60000000000, 120000000000, churn_common, false},
    {"rearm", offsetof(Peer, rearm), 60000000000, 60000000001, rearm, false},
    {"fire", offsetof(Peer, add), 0, 50000000, fire, false},
    {"periodic", offsetof(Peer, add_repeating), 10000000, 50000000, periodic, false},
    {"virtual", offsetof(Peer, virtual_run), 10000000, 50000000, virtual_time, false},
    {"ping", offsetof(Peer, post), 0, 1, ping, true},
    {"post", offsetof(Peer, post), 0, 1, post_all, true},
    {"fdping", offsetof(Peer, watch), 0, 1, descriptor_ping, true},
    {"chain", offsetof(Peer, watch), 0, 1, descriptor_chain, false},
    {"idle", offsetof(Peer, pass), 0, 1, idle_pass, false},
    {"switch", offsetof(Peer, pass_in_mode), 0, 1, mode_switch, false},
    {"parked", offsetof(Peer, watch_in_mode), 0, 1, descriptors_out_of_mode, false},
    {"yield", offsetof(Peer, tasks), 0, 1, tasks, true},
    {"preferring", offsetof(Peer, tasks), 0, 1, tasks, true},
    {"actors", offsetof(Peer, tasks), 0, 1, tasks, true},
    {"actors-preferring", offsetof(Peer, tasks), 0, 1, tasks, true},
    {"hop", offsetof(Peer, tasks), 0, 1, tasks, true},
    {"sleeps", offsetof(Peer, tasks), 0, 1000000000, tasks, true},
};

int harness_main(int argc, char **argv, Peer *given) {
    if (argc < 5) {
        fprintf(stderr, "usage: %s form workload size count\n", argv[0]);
        return 2;
    }
    size = strtoull(argv[3], NULL, 10);
    uint64_t count = strtoull(argv[4], NULL, 10);
    workload = argv[2];
    peer = given;

    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    signal(SIGPIPE, SIG_IGN);

    for (size_t i = 0; i < sizeof workloads / sizeof *workloads; i++) {
        if (strcmp(workload, workloads[i].name)) continue;
        peer->start(argv[1], workloads[i].has_threads);
        if (!peer->post && peer->wake) peer->post = post_to_queue;
        if (*(void **)((char *)peer + workloads[i].needs)) {
            make_inputs(workloads[i].low, workloads[i].high);
            workloads[i].run(count);
        } else {
            puts("not applicable");
        }
        fflush(stdout);
        // Without teardown: the peers' threads and a million timers are not part of the measurement.
        _exit(0);
    }
    fprintf(stderr, "there is no workload %s\n", workload);
    return 2;
}
