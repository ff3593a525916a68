// Clients of a server, on one thread: `Load PORT CONNECTIONS MESSAGES AT_A_TIME REQUEST REPLY [SETUP REPLY]`.
//
// Each connection sends AT_A_TIME requests, and the next when all replies have arrived. REQUEST is a text, in which
// %06d is the connection's number, or a number of bytes to send; REPLY is the number of bytes in a reply. A set-up is
// sent once on each connection before the timing begins. Prints the number of replies a second, and the microseconds in
// which half of the messages and 99 % of them were replied to.
#include <arpa/inet.h>
#include <ctype.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

struct client {
  int descriptor;
  long missing;
  double said;
  char *message;
  size_t length;
};

static void check(long result, const char *what) {
  if (result > 0) return;
  perror(what);
  exit(1);
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec + time.tv_nsec * 1e-9;
}

// Composes a client's request, repeated `times` times.
static void compose(struct client *client, const char *request, int times, int number) {
  char text[512];
  size_t length = isdigit(*request) ? strtoul(request, NULL, 10) : (size_t)snprintf(text, sizeof text, request, number);
  client->length = length * times;
  client->message = calloc(1, client->length + 1);
  for (int i = 0; i < times && !isdigit(*request); i++) memcpy(client->message + i * length, text, length);
}

static int compare(const void *left, const void *right) {
  double a = *(const double *)left, b = *(const double *)right;
  return (a > b) - (a < b);
}

static void say(struct client *client, long reply) {
  client->said = now();
  check(send(client->descriptor, client->message, client->length, MSG_NOSIGNAL), "send");
  client->missing = reply;
}

int main(int argc, char **argv) {
  if (argc != 7 && argc != 9) {
    fprintf(stderr, "usage: Load PORT CONNECTIONS MESSAGES AT_A_TIME REQUEST REPLY [SETUP REPLY]\n");
    return 64;
  }
  int port = atoi(argv[1]), connections = atoi(argv[2]), times = atoi(argv[4]);
  long messages = atol(argv[3]) / times, reply = atol(argv[6]) * times, sent = 0, received = 0;
  struct client *clients = calloc(connections, sizeof *clients);
  double *latencies = calloc(messages, sizeof *latencies);
  static char room[1 << 20];
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int poll = epoll_create1(0);
  for (int i = 0; i < connections; i++) {
    struct client *client = &clients[i];
    int one = 1;
    check(client->descriptor = socket(AF_INET, SOCK_STREAM, 0), "socket");
    check(connect(client->descriptor, (struct sockaddr *)&address, sizeof address) + 1, "connect");
    setsockopt(client->descriptor, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (argc == 9) {
      compose(client, argv[7], 1, i);
      say(client, atol(argv[8]));
      check(recv(client->descriptor, room, client->missing, MSG_WAITALL), "recv");
      free(client->message);
    }
    compose(client, argv[5], times, i);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = client};
    epoll_ctl(poll, EPOLL_CTL_ADD, client->descriptor, &event);
  }
  double start = now();
  for (; sent < connections && sent < messages; sent++) say(&clients[sent], reply);
  struct epoll_event events[256];
  while (received < messages) {
    int count = epoll_wait(poll, events, 256, -1);
    for (int e = 0; e < count; e++) {
      struct client *client = events[e].data.ptr;
      ssize_t got = recv(client->descriptor, room, sizeof room, 0);
      check(got, "recv");
      client->missing -= got;
      if (client->missing < 0) return fprintf(stderr, "more came back than expected: %s\n", room), 1;
      if (client->missing > 0) continue;
      latencies[received++] = now() - client->said;
      if (sent == messages) continue;
      say(client, reply);
      sent++;
    }
  }
  double seconds = now() - start;
  qsort(latencies, messages, sizeof *latencies, compare);
  double half = latencies[messages / 2], most = latencies[messages * 99 / 100];
  printf("%.0f %.1f %.1f\n", messages * times / seconds, half * 1e6, most * 1e6);
  return 0;
}
