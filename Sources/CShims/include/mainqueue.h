#ifndef MAINQUEUE_H
#define MAINQUEUE_H

/// An event descriptor that becomes readable when libdispatch's main queue, which runs the jobs of the main actor, has
/// something to run; -1 if libdispatch is not there.
int rlk_main_queue_descriptor(void);

/// Runs what waits in the main queue, on the main thread. Does nothing while that is under way.
void rlk_drain_main_queue(void);

#endif
