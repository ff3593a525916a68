#ifndef CSHIMS_SIGNALS_H
#define CSHIMS_SIGNALS_H

// Who hears of which signal, for the whole process. Any thread may call these; none of them from a signal handler.

/// From now on every delivery of a signal adds 1 to an event descriptor. The first one for a signal puts the handler in
/// place and keeps the disposition that was there. Returns a handle for `rlk_signal_remove`, or NULL and errno.
void *rlk_signal_add(int signal, int descriptor);

/// Ends what `rlk_signal_add` began; when it returns, nothing writes to the descriptor any more. With the last one for
/// its signal the former disposition comes back, unless somebody else has replaced the handler meanwhile.
void rlk_signal_remove(void *handle);

/// Ignores a signal; if it is being listened to, once that is over. 0, or -1 and errno.
int rlk_signal_ignore(int signal);

#endif
