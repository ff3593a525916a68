/// Notes that a thread of a simulation that answers calls does what the simulation does not answer; `name` may be NULL.
void rlk_escape(const char *what, const char *name);

/// The same with a file, unless every run finds the same there.
void rlk_escape_to_file(const char *what, const char *path, int changes);
