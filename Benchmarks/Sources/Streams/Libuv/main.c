// An echo server on libuv, as in its guide: `LibuvEcho PORT`.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

struct writing {
  uv_write_t request;
  uv_buf_t bytes;
};

static void has_closed(uv_handle_t *handle) {
  free(handle);
}

static void allocate(uv_handle_t *handle, size_t size, uv_buf_t *room) {
  *room = uv_buf_init(malloc(size), size);
}

static void has_written(uv_write_t *request, int status) {
  struct writing *writing = (struct writing *)request;
  free(writing->bytes.base);
  free(writing);
}

static void has_read(uv_stream_t *connection, ssize_t count, const uv_buf_t *room) {
  if (count > 0) {
    struct writing *writing = malloc(sizeof *writing);
    writing->bytes = uv_buf_init(room->base, count);
    uv_write(&writing->request, connection, &writing->bytes, 1, has_written);
    return;
  }
  if (count < 0) uv_close((uv_handle_t *)connection, has_closed);
  free(room->base);
}

static void has_accepted(uv_stream_t *listener, int status) {
  if (status < 0) return;
  uv_tcp_t *connection = malloc(sizeof *connection);
  uv_tcp_init(listener->loop, connection);
  if (uv_accept(listener, (uv_stream_t *)connection) != 0) return uv_close((uv_handle_t *)connection, has_closed);
  uv_tcp_nodelay(connection, 1);
  uv_read_start((uv_stream_t *)connection, allocate, has_read);
}

int main(int argc, char **argv) {
  if (argc != 2) return fprintf(stderr, "usage: LibuvEcho PORT\n"), 64;
  signal(SIGPIPE, SIG_IGN);
  uv_loop_t *loop = uv_default_loop();
  uv_tcp_t listener;
  struct sockaddr_in address;
  uv_ip4_addr("127.0.0.1", atoi(argv[1]), &address);
  uv_tcp_init(loop, &listener);
  uv_tcp_bind(&listener, (struct sockaddr *)&address, 0);
  int result = uv_listen((uv_stream_t *)&listener, 1024, has_accepted);
  if (result != 0) return fprintf(stderr, "listen: %s\n", uv_strerror(result)), 1;
  return uv_run(loop, UV_RUN_DEFAULT);
}
