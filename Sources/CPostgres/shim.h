// libpq, with an inline wrapper for what is read by a code that is a character, which Swift does not see.
#ifndef FANFARE_CPOSTGRES_SHIM_H
#define FANFARE_CPOSTGRES_SHIM_H

#include <libpq-fe.h>
#include <stddef.h>

/* The fields of an error; NULL where the server sent none. */

static inline const char *fanfare_pq_sqlstate(const PGresult *result) {
    return PQresultErrorField(result, PG_DIAG_SQLSTATE);
}
/* ERROR, FATAL or PANIC, whatever the server's language. */
static inline const char *fanfare_pq_severity(const PGresult *result) {
    return PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
}
static inline const char *fanfare_pq_message(const PGresult *result) {
    return PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
}
static inline const char *fanfare_pq_detail(const PGresult *result) {
    return PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL);
}
static inline const char *fanfare_pq_constraint(const PGresult *result) {
    return PQresultErrorField(result, PG_DIAG_CONSTRAINT_NAME);
}

static inline void fanfare_pq_ignore_notice(void *context, const char *message) {
    (void)context;
    (void)message;
}

/* Without it libpq writes notices to standard error. */
static inline void fanfare_pq_ignore_notices(PGconn *connection) {
    PQsetNoticeProcessor(connection, fanfare_pq_ignore_notice, NULL);
}

/* Asks the server to stop what it does for a connection; any thread may, while the connection waits. Frees `cancel`. */
static inline int fanfare_pq_cancel(PGcancel *cancel) {
    char reason[256];
    int is_sent = PQcancel(cancel, reason, sizeof reason);
    PQfreeCancel(cancel);
    return is_sent;
}

#endif
