/* SPDX-License-Identifier: Apache-2.0
 * The process cairn-media as its parent sees it: start, ask, and tell how it ended. */
#ifndef CAIRN_MEDIA_HELPER_H
#define CAIRN_MEDIA_HELPER_H

#include "base/error.h"
#include "media/media.h"
#include "media/protocol.h"
#include <sys/types.h>

struct helper {
    char program[600];
    struct media_options options; /* complete; program is not used */
    bool writes;                  /* it gets a file to write to */
    int fd;                       /* its end of the socket pair; -1: not running */
    pid_t pid;                    /* 0: nobody's child, as in tests */
};

/* Finds the program; starts nothing. */
int helper_init(struct helper *h, const struct media_options *options, bool writes, struct cairn_error *err);
/* Ends the process.  It is started again by the next request. */
void helper_stop(struct helper *h);

/* Sends a request about a file; `path` is for messages. */
int helper_ask(struct helper *h, const char *path, const struct wire_message *m, struct cairn_error *err);
/* The head of the next answer; an ERROR becomes this function's, and ALIVE is passed over.  After a failure
 * for which the process is to blame, it is not running any more. */
int helper_answer(struct helper *h, const char *path, struct wire_head *head, struct cairn_error *err);
/* Exactly n bytes of its payload. */
int helper_payload(struct helper *h, const char *path, void *into, size_t n, struct cairn_error *err);
/* The answer is not what the protocol demands: ends the process. */
int helper_confused(struct helper *h, const char *path, struct cairn_error *err);

/* A reader for tests, whose process is whoever holds the other end of this socket. */
struct media *media_from_socket(int fd, uint64_t pixels);

#endif
