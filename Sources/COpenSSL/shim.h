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

/* The client's side: offers `h2` and nothing else, and takes sessions up again; they are kept by their owner, not by
   OpenSSL. */
static inline int fanfare_tls_prepare_client(SSL_CTX *context) {
    static const unsigned char protocols[] = {2, 'h', '2'};
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL_STORE);
    return SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1
        && SSL_CTX_set_alpn_protos(context, protocols, sizeof protocols) == 0;
}

static inline int fanfare_tls_set_server_name(SSL *handle, const char *name) {
    return SSL_set_tlsext_host_name(handle, name) == 1;
}

/* The chain that came with a certificate; the stack's functions are macros. NULL is an empty one. */
static inline int fanfare_x509_stack_count(const STACK_OF(X509) *stack) {
    return stack == NULL ? 0 : sk_X509_num(stack);
}
static inline X509 *fanfare_x509_stack_item(const STACK_OF(X509) *stack, int index) {
    return sk_X509_value(stack, index);
}
static inline void fanfare_x509_stack_free(STACK_OF(X509) *stack) { sk_X509_pop_free(stack, X509_free); }

/* The user ID of a certificate's subject, which is the topic of a push certificate. The number of bytes; -1: none. */
static inline int fanfare_x509_user_id(X509 *certificate, char *text, int size) {
    return X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_userId, text, size);
}

/* The value of an extension by its OID, which the certificate owns. The number of bytes; 0: it has none. */
static inline int fanfare_x509_extension(X509 *certificate, const char *oid, const unsigned char **bytes) {
    ASN1_OBJECT *object = OBJ_txt2obj(oid, 1);
    int position = object == NULL ? -1 : X509_get_ext_by_OBJ(certificate, object, -1);
    ASN1_OBJECT_free(object);
    if (position < 0) return 0;
    ASN1_OCTET_STRING *value = X509_EXTENSION_get_data(X509_get_ext(certificate, position));
    *bytes = ASN1_STRING_get0_data(value);
    return ASN1_STRING_length(value);
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
