/* SPDX-License-Identifier: Apache-2.0
 * MPI, opened at run time: messages of bytes between ranks.  Whichever MPI the launcher belongs to is used; no header and no
 * compiler of MPI is needed (mpi_dialects.def).
 *
 * One thread uses it. */
#ifndef CAIRN_DIST_MPI_H
#define CAIRN_DIST_MPI_H

#include "base/error.h"
#include "dist/world.h"
#include <stddef.h>

struct mpi;

/* Joins the ranks of the launcher.  Fails if the library sees another number of them: it then belongs to another launcher. */
int mpi_open(const struct world *w, struct mpi **out, struct cairn_error *err);
/* Waits for all ranks, and leaves. */
void mpi_close(struct mpi *m);
/* Ends all ranks, this one too. */
void mpi_abort(struct mpi *m, int exit_code) __attribute__((noreturn));
/* "Open MPI v4.1.4", in one line, and the file. */
const char *mpi_version(const struct mpi *m);
const char *mpi_library(const struct mpi *m);

/* A message under way.  The bytes must stay until it is done. */
struct mpi_request {
    void *handle;
};
enum { MPI_FROM_ANY = -1, MPI_MESSAGE_MOST = 1 << 30 };
int mpi_send(struct mpi *m, int to, int tag, const void *bytes, size_t n, struct mpi_request *r,
             struct cairn_error *err);
int mpi_receive(struct mpi *m, int from, int tag, void *into, size_t n, struct mpi_request *r,
                struct cairn_error *err);
int mpi_test(struct mpi *m, struct mpi_request *r, bool *done, struct cairn_error *err);
/* Takes back a receive that is not done. */
void mpi_cancel(struct mpi *m, struct mpi_request *r);

#endif
