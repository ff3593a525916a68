// What users import: the core, and beside it whatever needs the calling thread's loop.

@_exported public import RunLoopCore
