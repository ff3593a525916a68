// Clients of an echo server, on one thread: `EchoLoad PORT CONNECTIONS BYTES MESSAGES`. Each connection sends a message,
// and the next when all of it has come back. Prints how many messages a second that made.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static void check(int result, const char *what) {
  if (result >= 0) return;
  perror(what);
  exit(1);
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec + time.tv_nsec * 1e-9;
}

int main(int argc, char **argv) {
  if (argc != 5) return fprintf(stderr, "usage: EchoLoad PORT CONNECTIONS BYTES MESSAGES\n"), 64;
  int port = atoi(argv[1]), connections = atoi(argv[2]), bytes = atoi(argv[3]);
  long messages = atol(argv[4]), sent = 0, received = 0;
  int *missing = calloc(connections, sizeof *missing), *descriptors = calloc(connections, sizeof *descriptors);
  char *message = calloc(1, bytes), *room = malloc(bytes);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int poll = epoll_create1(0);
  for (int i = 0; i < connections; i++) {
    int one = 1;
    check(descriptors[i] = socket(AF_INET, SOCK_STREAM, 0), "socket");
    check(connect(descriptors[i], (struct sockaddr *)&address, sizeof address), "connect");
    setsockopt(descriptors[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = i};
    check(epoll_ctl(poll, EPOLL_CTL_ADD, descriptors[i], &event), "epoll_ctl");
  }
  double start = now();
  for (int i = 0; i < connections && sent < messages; i++, sent++) {
    check(send(descriptors[i], message, bytes, MSG_NOSIGNAL), "send");
    missing[i] = bytes;
  }
  struct epoll_event events[256];
  while (received < messages) {
    int count = epoll_wait(poll, events, 256, -1);
    for (int e = 0; e < count; e++) {
      int i = events[e].data.u32;
      ssize_t got = recv(descriptors[i], room, missing[i], 0);
      if (got <= 0) return fprintf(stderr, "the server has closed a connection\n"), 1;
      if ((missing[i] -= got) > 0) continue;
      received++;
      if (sent == messages) continue;
      check(send(descriptors[i], message, bytes, MSG_NOSIGNAL), "send");
      missing[i] = bytes;
      sent++;
    }
  }
  printf("%.0f\n", messages / (now() - start));
  return 0;
}
