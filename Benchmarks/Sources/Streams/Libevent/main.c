// An echo server on libevent's bufferevents: `LibeventEcho PORT [CHAIN KEY]`; with a certificate it speaks TLS.
#include <arpa/inet.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/bufferevent_ssl.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static SSL_CTX *tls;

static void has_read(struct bufferevent *connection, void *context) {
  bufferevent_write_buffer(connection, bufferevent_get_input(connection));
}

static void has_event(struct bufferevent *connection, short events, void *context) {
  if (events & (BEV_EVENT_EOF | BEV_EVENT_ERROR)) bufferevent_free(connection);
}

static void has_accepted(
    struct evconnlistener *listener, evutil_socket_t descriptor, struct sockaddr *peer, int length, void *context) {
  struct event_base *base = evconnlistener_get_base(listener);
  int one = 1;
  setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  struct bufferevent *connection =
      tls ? bufferevent_openssl_socket_new(
                base, descriptor, SSL_new(tls), BUFFEREVENT_SSL_ACCEPTING, BEV_OPT_CLOSE_ON_FREE)
          : bufferevent_socket_new(base, descriptor, BEV_OPT_CLOSE_ON_FREE);
  bufferevent_setcb(connection, has_read, NULL, has_event, NULL);
  bufferevent_enable(connection, EV_READ | EV_WRITE);
}

int main(int argc, char **argv) {
  if (argc != 2 && argc != 4) return fprintf(stderr, "usage: LibeventEcho PORT [CHAIN KEY]\n"), 64;
  if (argc == 4) {
    tls = SSL_CTX_new(TLS_server_method());
    if (SSL_CTX_use_certificate_chain_file(tls, argv[2]) != 1 ||
        SSL_CTX_use_PrivateKey_file(tls, argv[3], SSL_FILETYPE_PEM) != 1)
      return fprintf(stderr, "no certificate\n"), 1;
  }
  signal(SIGPIPE, SIG_IGN);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[1]))};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  struct event_base *base = event_base_new();
  struct evconnlistener *listener = evconnlistener_new_bind(
      base, has_accepted, NULL, LEV_OPT_CLOSE_ON_FREE | LEV_OPT_REUSEABLE, 1024, (struct sockaddr *)&address,
      sizeof address);
  if (!listener) return perror("listen"), 1;
  return event_base_dispatch(base);
}
