// OpenSSL 3 or later, and as functions those of its macros that Swift cannot see.
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

static inline int rlk_ssl_ctx_set_minimum(SSL_CTX *context, int version) {
    return (int)SSL_CTX_set_min_proto_version(context, version);
}

/// What every connection of this package needs: writes that may stop half-way and go on from another place, no
/// renegotiation, one system call for a record, and no memory for a connection that rests.
static inline void rlk_ssl_ctx_set_usual(SSL_CTX *context) {
    SSL_CTX_set_mode(
        context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_read_ahead(context, 1);
}

static inline int rlk_ssl_ctx_add_chain(SSL_CTX *context, X509 *certificate) {
    return (int)SSL_CTX_add1_chain_cert(context, certificate);
}

/// What the decoders of OpenSSL 3 say of a text that is none of theirs.
static inline int rlk_err_unsupported(void) {
    return ERR_R_UNSUPPORTED;
}

/// Has OpenSSL take its random numbers from a function, which returns 1. Not deprecated for good: OpenSSL's providers, which
/// are the other way, cannot tell one thread from another.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
static inline void rlk_rand_replace(int (*bytes)(unsigned char *bytes, int count)) {
    static RAND_METHOD method;
    method = *RAND_OpenSSL();
    method.bytes = bytes;
    method.pseudorand = bytes;
    RAND_set_rand_method(&method);
}

/// OpenSSL's own random numbers.
static inline int rlk_rand_usual(unsigned char *bytes, int count) {
    return RAND_OpenSSL()->bytes(bytes, count);
}
#pragma GCC diagnostic pop

static inline void rlk_x509_print_subject(BIO *output, X509 *certificate) {
    X509_NAME_print_ex(output, X509_get_subject_name(certificate), 0, XN_FLAG_RFC2253);
}

static inline int rlk_ssl_set_server_name(SSL *ssl, const char *name) {
    return (int)SSL_set_tlsext_host_name(ssl, name);
}
