#ifndef CSHIMS_SIGNALS_H
#define CSHIMS_SIGNALS_H

// The listeners for signals, for the whole process. Any thread may call these functions, but no signal handler.

/// Adds 1 to an event descriptor at every delivery of a signal from now on. The first listener for a signal installs
/// the handler and keeps the former disposition. Returns a handle for `rlk_signal_remove`, or NULL and errno.
void *rlk_signal_add(int signal, int descriptor);

/// Ends the listening that `rlk_signal_add` began; after it returns, nothing writes to the descriptor any more. The
/// last listener for a signal restores the former disposition, if no other code has replaced the handler meanwhile.
void rlk_signal_remove(void *handle);

/// Ignores a signal; while there are listeners for it, from their end on. 0, or -1 and errno.
int rlk_signal_ignore(int signal);

#endif
