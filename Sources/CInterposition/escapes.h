/// Notes that a thread of a simulation that answers calls makes one that the simulation does not answer; `name` may be
/// NULL.
void rlk_escape(const char *what, const char *name);

/// Notes such a call for a file, if its contents may differ between runs.
void rlk_escape_to_file(const char *what, const char *path, int changes);
