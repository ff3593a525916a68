// Clients of an echo server, on one thread, which also look at the server's process:
//
//   StreamLoad echo PORT PROCESS CONNECTIONS SIZE IN_FLIGHT MILLISECONDS
//     Each connection keeps IN_FLIGHT messages of SIZE bytes in flight. Prints the nanoseconds of processor time that
//     the server takes for a message, and the messages a second, of the time after a warm-up of a quarter of it.
//   StreamLoad plain|tls PORT PROCESS CONNECTIONS
//     Each connection has one message of 64 bytes echoed and then rests. Prints the bytes by which the server's memory
//     (PSS) has grown for a connection.
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

struct client {
  int descriptor;
  int awaits_room;
  size_t unsent, partial;
};

static char room[1 << 20];
static int poll_descriptor;

static void check(int is_good, const char *what) {
  if (is_good) return;
  perror(what);
  exit(1);
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec + time.tv_nsec * 1e-9;
}

/// Returns the nanoseconds that the threads of a process have had a processor.
static double spent(const char *process) {
  char path[512];
  snprintf(path, sizeof path, "/proc/%s/task", process);
  DIR *directory = opendir(path);
  check(directory != NULL, path);
  double sum = 0;
  for (struct dirent *entry; (entry = readdir(directory));) {
    if (*entry->d_name == '.') continue;
    snprintf(path, sizeof path, "/proc/%s/task/%s/schedstat", process, entry->d_name);
    FILE *file = fopen(path, "r");
    double time = 0;
    if (file && fscanf(file, "%lf", &time) == 1) sum += time;
    if (file) fclose(file);
  }
  closedir(directory);
  return sum;
}

/// Returns the memory of a process, in bytes.
static double memory(const char *process) {
  char line[256];
  snprintf(line, sizeof line, "/proc/%s/smaps_rollup", process);
  FILE *file = fopen(line, "r");
  check(file != NULL, "smaps_rollup");
  double kilobytes = 0;
  while (fgets(line, sizeof line, file) && sscanf(line, "Pss: %lf kB", &kilobytes) != 1) continue;
  fclose(file);
  return kilobytes * 1024;
}

static int connection(int port) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int one = 1, descriptor = socket(AF_INET, SOCK_STREAM, 0);
  check(descriptor >= 0, "socket");
  check(connect(descriptor, (struct sockaddr *)&address, sizeof address) == 0, "connect");
  setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  // A port of a client that closes first would stay taken for a minute.
  struct linger reset = {.l_onoff = 1};
  setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  return descriptor;
}

/// Makes connections, no more at a time than may wait to be accepted. One message is echoed on each.
static struct client *connect_all(int port, int connections, SSL_CTX *context) {
  enum { together = 256 };
  struct client *clients = calloc(connections, sizeof *clients);
  for (int first = 0; first < connections; first += together) {
    int end = first + together < connections ? first + together : connections;
    for (int i = first; i < end; i++) {
      clients[i].descriptor = connection(port);
      if (!context) check(send(clients[i].descriptor, room, 64, MSG_NOSIGNAL) == 64, "send");
    }
    for (int i = first; i < end; i++) {
      if (!context) {
        check(recv(clients[i].descriptor, room, 64, MSG_WAITALL) == 64, "recv");
        continue;
      }
      SSL *ssl = SSL_new(context);
      SSL_set_fd(ssl, clients[i].descriptor);
      check(SSL_connect(ssl) == 1, "SSL_connect");
      check(SSL_write(ssl, room, 64) == 64, "SSL_write");
      for (int got = 0, count; got < 64; got += count) check((count = SSL_read(ssl, room, 64)) > 0, "SSL_read");
    }
  }
  return clients;
}

static void say(struct client *client) {
  while (client->unsent > 0) {
    size_t length = client->unsent < sizeof room ? client->unsent : sizeof room;
    ssize_t count = send(client->descriptor, room, length, MSG_NOSIGNAL);
    if (count < 0 && errno == EAGAIN) break;
    check(count > 0, "send");
    client->unsent -= count;
  }
  int awaits_room = client->unsent > 0;
  if (awaits_room == client->awaits_room) return;
  client->awaits_room = awaits_room;
  struct epoll_event event = {.events = EPOLLIN | (awaits_room ? EPOLLOUT : 0), .data.ptr = client};
  epoll_ctl(poll_descriptor, EPOLL_CTL_MOD, client->descriptor, &event);
}

/// Talks until a point in time. Returns the number of bytes that have come back.
static double talk(double end, size_t size) {
  double received = 0;
  struct epoll_event events[256];
  while (now() < end) {
    int count = epoll_wait(poll_descriptor, events, 256, 100);
    for (int e = 0; e < count; e++) {
      struct client *client = events[e].data.ptr;
      if (events[e].events & ~EPOLLOUT) {
        ssize_t got = recv(client->descriptor, room, sizeof room, 0);
        check(got > 0, "recv");
        received += got;
        client->partial += got;
        client->unsent += client->partial / size * size;
        client->partial %= size;
      }
      say(client);
    }
  }
  return received;
}

static void echo(int port, const char *process, int connections, size_t size, int in_flight, double seconds) {
  poll_descriptor = epoll_create1(0);
  struct client *clients = connect_all(port, connections, NULL);
  for (int i = 0; i < connections; i++) {
    fcntl(clients[i].descriptor, F_SETFL, O_NONBLOCK);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = &clients[i]};
    epoll_ctl(poll_descriptor, EPOLL_CTL_ADD, clients[i].descriptor, &event);
  }
  for (int i = 0; i < connections; i++) {
    clients[i].unsent = size * in_flight;
    say(&clients[i]);
  }
  talk(now() + seconds / 4, size);
  double start = now(), before = spent(process), after, messages = 0;
  // The system may hold all bytes back for a fifth of a second.
  do messages += talk(now() + seconds, size) / size;
  while ((after = spent(process)) - before < 1e6);
  printf("%.1f %.0f\n", (after - before) / messages, messages / (now() - start));
}

static void rest(int port, const char *process, int connections, SSL_CTX *context) {
  // One-time costs of a server are not counted.
  struct client *first = connect_all(port, 100, context);
  for (int i = 0; i < 100; i++) close(first[i].descriptor);
  sleep(1);
  double before = memory(process);
  connect_all(port, connections, context);
  sleep(1);
  printf("%.0f\n", (memory(process) - before) / connections);
}

int main(int argc, char **argv) {
  if (argc == 8 && strcmp(argv[1], "echo") == 0) {
    echo(atoi(argv[2]), argv[3], atoi(argv[4]), atol(argv[5]), atoi(argv[6]), atoi(argv[7]) * 1e-3);
  } else if (argc == 5) {
    SSL_CTX *context = strcmp(argv[1], "tls") == 0 ? SSL_CTX_new(TLS_client_method()) : NULL;
    rest(atoi(argv[2]), argv[3], atoi(argv[4]), context);
  } else {
    fprintf(stderr, "usage: see Sources/Streams/Load/main.c\n");
    return 64;
  }
  return 0;
}
