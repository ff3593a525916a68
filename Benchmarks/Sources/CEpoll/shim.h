#include <sys/epoll.h>
#include <sys/timerfd.h>
