// What users import: the core, and everything that needs the calling thread's loop.

@_exported public import RunLoopCore
