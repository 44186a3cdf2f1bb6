// OpenSSL, with an inline wrapper for each macro: Swift cannot call function-like macros.
#ifndef FANFARE_COPENSSL_SHIM_H
#define FANFARE_COPENSSL_SHIM_H

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/sha.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

/* What every TLS context of ours has in common; these are macros. TLS 1.2 or later; a write may take a part of what it
   is given and may be repeated from another address; no resumption, so that a certificate is always looked at. */
static inline int fanfare_tls_prepare(SSL_CTX *context) {
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    return SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1 && SSL_CTX_set_num_tickets(context, 0) == 1;
}

/* SHA-1 in the low-level form: the EVP one looks its algorithm up on every call. 1 on success. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
static inline int fanfare_sha1(const void *bytes, size_t count, unsigned char digest[SHA_DIGEST_LENGTH]) {
    SHA_CTX context;
    return SHA1_Init(&context) && SHA1_Update(&context, bytes, count) && SHA1_Final(digest, &context);
}
#pragma GCC diagnostic pop

#endif
