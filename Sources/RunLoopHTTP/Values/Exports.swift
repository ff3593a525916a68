#if Adapters
// Requests, answers and bodies consist of these types, so that a program need not depend on their packages.
@_exported public import HTTPTypes
@_exported public import struct NIOCore.ByteBuffer
#endif
