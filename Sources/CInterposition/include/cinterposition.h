// Functions of the C library, defined again: on threads of a simulation they answer from it, and on all others they are the
// library's. A program that links this target has them in place of the library's, as have the shared libraries that it uses.
// There is nothing to call.
