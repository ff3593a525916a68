// Memory of files that another program may shorten.
#ifndef RLK_MAPPED_H
#define RLK_MAPPED_H

#include <stddef.h>

/// A file mapped in places, with the sentence that reports the loss of one of them.
typedef struct rlk_mapped_file rlk_mapped_file;

/// Makes a file whose loss is reported with a sentence, which is copied; `NULL` without memory.
rlk_mapped_file *_Nullable rlk_make_mapped_file(const char *_Nonnull sentence);
/// Gives the file up; it is freed when its last guarded mapping has ended.
void rlk_free_mapped_file(rlk_mapped_file *_Nonnull file);

/// Keeps the process alive if this mapping of the file has lost its pages because the file was shortened or its file
/// system has no room: anonymous memory takes its place, and the sentence goes to standard error once.
///
/// Returns 0, or an error number.
int rlk_guard_mapping(rlk_mapped_file *_Nonnull file, void *_Nonnull start, size_t size);
/// Ends the protection of a mapping, before it is unmapped. Does nothing if the mapping is not guarded.
void rlk_unguard_mapping(void *_Nonnull start);

/// Returns 1 if a mapping of the file has been replaced.
int rlk_is_lost(const rlk_mapped_file *_Nonnull file);

#endif
