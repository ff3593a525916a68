#include <glib-unix.h>
#include <glib.h>
#include <sys/epoll.h>
