// The module that users import: the core, and everything that needs the calling thread's loop.

@_exported public import RunLoopCore
