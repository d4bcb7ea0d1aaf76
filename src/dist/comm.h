/* SPDX-License-Identifier: Apache-2.0
 * What the ranks of a job do together: gather, broadcast, sum.
 *
 * Every rank must make the same calls in the same order.  A rank that fails says so (comm_fail), and whatever the others wait for
 * then ends with its error.  NULL stands for a job of one rank everywhere: all calls then succeed and change nothing.
 *
 * One thread uses it. */
#ifndef CAIRN_DIST_COMM_H
#define CAIRN_DIST_COMM_H

#include "base/error.h"
#include "dist/world.h"
#include <stddef.h>
#include <stdint.h>

struct comm;

/* Joins the ranks of the launcher; *out is NULL where there is one.  After a failure *out may be set: the others wait for
 * this rank, so that comm_fail and comm_close must follow. */
int comm_open(const struct world *w, struct comm **out, struct cairn_error *err);
/* Waits for the others, and leaves.  After a failure of any rank it ends all of them and does not return. */
void comm_close(struct comm *c, int exit_code);
/* After a failure, on a rank that is not the first: rank 0 may still have to save, and then ends this process too.  Returns
 * if it does not. */
void comm_await_end(struct comm *c);

int comm_rank(const struct comm *c);
int comm_size(const struct comm *c);
/* Among the ranks of this machine. */
int comm_local_rank(const struct comm *c);
int comm_local_size(const struct comm *c);
const char *comm_host(const struct comm *c, int rank);
const char *comm_engine(const struct comm *c);  /* "mpi"; "self" for one rank */
const char *comm_version(const struct comm *c); /* of the library */

/* How long a call may wait for another rank, in seconds. */
void comm_set_limit(struct comm *c, double seconds);
/* Called once in a call that has waited this long, with the rank that is waited for. */
struct comm_late {
    double after_s;
    void (*say)(void *to, int rank, double seconds);
    void *to;
};
void comm_set_late(struct comm *c, struct comm_late late);
/* Seconds spent in calls so far. */
double comm_seconds(const struct comm *c);

/* n bytes of each rank, in the order of the ranks. */
int comm_gather(struct comm *c, const void *mine, size_t n, void *all, struct cairn_error *err);
/* The bytes of rank 0 to all. */
int comm_broadcast(struct comm *c, void *bytes, size_t n, struct cairn_error *err);
/* x becomes the sum of all ranks' x, number by number, with the same bits on each.  Of 2, 4, 8 … ranks, it is the sum of a binary
 * tree, (x0 + x1) + (x2 + x3): where each x is itself the sum of such a tree, the number of ranks does not change a bit. */
int comm_sum(struct comm *c, float *x, size_t n, struct cairn_error *err);
/* The same for numbers that only one rank has; those of the others are 0. */
int comm_merge(struct comm *c, double *x, size_t n, struct cairn_error *err);

/* Tells the others why this rank ends.  Nothing but comm_close may follow. */
void comm_fail(struct comm *c, const struct cairn_error *why);
/* Whether a rank has failed, this one or another. */
bool comm_has_failed(const struct comm *c);

#endif
