#ifndef CINTERPOSITION_H
#define CINTERPOSITION_H

/// Functions of the C library, defined again: on threads of a simulation they answer from it, and on all others they are the
/// library's. A program that links this has them instead of the library's, as have the shared libraries that it uses.
void rlk_interpose(void);

#endif
