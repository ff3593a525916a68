// The kernel's share of an echo server: `EchoFloor PORT THREADS`. Each thread has a listener on the port and an epoll
// instance, and nothing else.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static int port;

static void *serve(void *unused) {
  (void)unused;
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), one = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  setsockopt(listener, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bind(listener, (struct sockaddr *)&address, sizeof address) < 0 || listen(listener, 1024) < 0) {
    perror("listen");
    exit(1);
  }
  int poll = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN, .data.fd = listener}, events[256];
  epoll_ctl(poll, EPOLL_CTL_ADD, listener, &event);
  static _Thread_local char room[65536];
  for (;;) {
    int count = epoll_wait(poll, events, 256, -1);
    for (int i = 0; i < count; i++) {
      int descriptor = events[i].data.fd;
      if (descriptor == listener) {
        int peer = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
        if (peer < 0) continue;
        event.data.fd = peer;
        epoll_ctl(poll, EPOLL_CTL_ADD, peer, &event);
        continue;
      }
      ssize_t got = recv(descriptor, room, sizeof room, 0);
      // The messages of the benchmark always find room.
      if (got <= 0 || send(descriptor, room, got, MSG_NOSIGNAL) != got) close(descriptor);
    }
  }
}

int main(int argc, char **argv) {
  if (argc != 3) return fprintf(stderr, "usage: EchoFloor PORT THREADS\n"), 64;
  port = atoi(argv[1]);
  for (int i = atoi(argv[2]); i > 1; i--) {
    pthread_t thread;
    pthread_create(&thread, NULL, serve, NULL);
  }
  serve(NULL);
}
