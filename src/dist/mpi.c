/* SPDX-License-Identifier: Apache-2.0 */
#include "dist/mpi.h"

#include "gpu/dl.h"
#include "gpu/libraries.h"
#include "os/library.h"
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- dialects ---- */

struct handle {
    const char *symbol; /* the handle is its address; NULL: a number */
    uintptr_t number;
};
#define HANDLE(n) \
    {             \
        NULL, n   \
    }
#define HANDLE_AT(name) \
    {                   \
        name, 0         \
    }

static const struct dialect {
    const char *name;
    struct handle comm_world, byte, errors_return;
    uintptr_t status_ignore;
    int any_source, funneled;
} dialects[] = {
#define X(kind, ...) { __VA_ARGS__ },
#include "dist/mpi_dialects.def"
#undef X
};

enum dialect_kind {
#define X(kind, ...) DIALECT_##kind,
#include "dist/mpi_dialects.def"
#undef X
};

/* Handles are declared as pointers, whatever they are; see mpi_dialects.def. */
struct functions {
    int (*Init_thread)(int *argc, char ***argv, int required, int *provided);
    int (*Finalize)(void);
    int (*Abort)(void *comm, int code);
    int (*Comm_size)(void *comm, int *size);
    int (*Comm_rank)(void *comm, int *rank);
    int (*Comm_set_errhandler)(void *comm, void *handler);
    int (*Get_library_version)(char *text, int *n);
    int (*Error_string)(int code, char *text, int *n);
    int (*Isend)(const void *bytes, int n, void *type, int to, int tag, void *comm, void **request);
    int (*Irecv)(void *into, int n, void *type, int from, int tag, void *comm, void **request);
    int (*Test)(void **request, int *done, void *status);
    int (*Cancel)(void **request);
    int (*Request_free)(void **request);
};

#define SYMBOL(name)                                          \
    {                                                         \
        "MPI_" #name, offsetof(struct functions, name), false \
    }
static const struct dl_symbol symbols[] = {
    SYMBOL(Init_thread),  SYMBOL(Finalize),
    SYMBOL(Abort),        SYMBOL(Comm_size),
    SYMBOL(Comm_rank),    SYMBOL(Comm_set_errhandler),
    SYMBOL(Isend),        SYMBOL(Get_library_version),
    SYMBOL(Error_string), SYMBOL(Irecv),
    SYMBOL(Test),         SYMBOL(Cancel),
    SYMBOL(Request_free),
};

enum { TEXT_MOST = 8192 }; /* what MPICH and the standard ABI may write */

struct mpi {
    struct functions f;
    const struct dialect *d;
    void *comm, *byte;
    char version[160], path[512];
};

static const struct dialect *dialect_of(void *library)
{
    if (os_library_symbol(library, "ompi_mpi_comm_world"))
        return &dialects[DIALECT_OPEN_MPI];
    int (*abi)(int *major, int *minor);
    void *symbol = os_library_symbol(library, "MPI_Abi_get_version");
    int major = -1, minor = -1;
    memcpy(&abi, &symbol, sizeof(abi));
    /* MPICH's own interface has the function too, and answers -1. */
    if (symbol && !abi(&major, &minor) && major > 0)
        return &dialects[DIALECT_STANDARD];
    return &dialects[DIALECT_MPICH];
}

static void *handle_of(void *library, const struct handle *h)
{
    return h->symbol ? os_library_symbol(library, h->symbol) : (void *)h->number;
}

/* ---- opening ---- */

static int check_code(const struct mpi *m, int code, const char *what, struct cairn_error *err)
{
    char text[TEXT_MOST] = "";
    int n = 0;
    if (!code)
        return 0;
    m->f.Error_string(code, text, &n);
    return cairn_fail(err, CAIRN_EIO, "%s: %.300s", what, text);
}

static void read_version(struct mpi *m)
{
    char text[TEXT_MOST] = "";
    int n = 0;
    m->f.Get_library_version(text, &n);
    for (char *c = text; *c; c++)
        *c = *c == '\t' ? ' ' : *c;
    snprintf(m->version, sizeof(m->version), "%.*s", (int)strcspn(text, ",\n"), text);
}

static int check_world(const struct mpi *m, const struct world *w, struct cairn_error *err)
{
    int size = 0, rank = -1;
    if (check_code(m, m->f.Comm_size(m->comm, &size), "MPI_Comm_size", err) ||
        check_code(m, m->f.Comm_rank(m->comm, &rank), "MPI_Comm_rank", err))
        return -1;
    if (size == w->size && rank == w->rank)
        return 0;
    cairn_fail(err, CAIRN_EUSAGE, "%s says that this is rank %d of %d, but %s (%s) sees rank %d of %d",
               launcher_name(w->launcher), w->rank, w->size, m->version, m->path, rank, size);
    return cairn_hint(err, w->launcher == LAUNCHER_SLURM
                               ? "srun must start MPI: try srun --mpi=pmix, or mpirun in the batch script"
                               : "use the mpirun that belongs to this library, or set LD_LIBRARY_PATH to the "
                                 "library of the launcher");
}

/* The library that belongs to the launcher, or any. */
static int open_library(enum launcher l, void **library, char *path, size_t size, struct cairn_error *err)
{
    struct cairn_error other;
    if (l == LAUNCHER_MPICH)
        return library_open(LIBRARY_MPICH, library, path, size, err);
    if (!library_open(LIBRARY_OPEN_MPI, library, path, size, err))
        return 0;
    return l != LAUNCHER_OPEN_MPI && !library_open(LIBRARY_MPICH, library, path, size, &other) ? 0 : -1;
}

static int start(struct mpi *m, void *library, struct cairn_error *err)
{
    int provided = 0;
    if (dl_resolve(library, m->path, symbols, ARRAY_LEN(symbols), &m->f, err))
        return -1;
    m->d = dialect_of(library);
    m->comm = handle_of(library, &m->d->comm_world);
    m->byte = handle_of(library, &m->d->byte);
    if (m->f.Init_thread(NULL, NULL, m->d->funneled, &provided))
        return cairn_fail(err, CAIRN_EIO, "%s: MPI_Init_thread failed", m->path);
    read_version(m);
    m->f.Comm_set_errhandler(m->comm, handle_of(library, &m->d->errors_return));
    return 0;
}

int mpi_open(const struct world *w, struct mpi **out, struct cairn_error *err)
{
    void *library;
    struct mpi *m = calloc(1, sizeof(*m));
    if (!m)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory");
    if (open_library(w->launcher, &library, m->path, sizeof(m->path), err)) {
        free(m);
        return cairn_hint(err, "the packages are called libopenmpi3 or libmpich12 in Debian and Ubuntu");
    }
    if (start(m, library, err)) {
        free(m);
        return -1;
    }
    if (check_world(m, w, err)) {
        mpi_close(m);
        return -1;
    }
    *out = m;
    return 0;
}

void mpi_close(struct mpi *m)
{
    if (!m)
        return;
    m->f.Finalize();
    free(m);
}

void mpi_abort(struct mpi *m, int exit_code)
{
    m->f.Abort(m->comm, exit_code);
    _exit(exit_code);
}

const char *mpi_version(const struct mpi *m)
{
    return m->version;
}

const char *mpi_library(const struct mpi *m)
{
    return m->path;
}

/* ---- messages ---- */

int mpi_send(struct mpi *m, int to, int tag, const void *bytes, size_t n, struct mpi_request *r,
             struct cairn_error *err)
{
    assert(n <= MPI_MESSAGE_MOST);
    return check_code(m, m->f.Isend(bytes, (int)n, m->byte, to, tag, m->comm, &r->handle), "MPI_Isend", err);
}

int mpi_receive(struct mpi *m, int from, int tag, void *into, size_t n, struct mpi_request *r,
                struct cairn_error *err)
{
    assert(n <= MPI_MESSAGE_MOST);
    int source = from == MPI_FROM_ANY ? m->d->any_source : from;
    return check_code(m, m->f.Irecv(into, (int)n, m->byte, source, tag, m->comm, &r->handle), "MPI_Irecv",
                      err);
}

int mpi_test(struct mpi *m, struct mpi_request *r, bool *done, struct cairn_error *err)
{
    int flag = 0;
    if (check_code(m, m->f.Test(&r->handle, &flag, (void *)m->d->status_ignore), "MPI_Test", err))
        return -1;
    *done = flag != 0;
    return 0;
}

void mpi_cancel(struct mpi *m, struct mpi_request *r)
{
    m->f.Cancel(&r->handle);
    m->f.Request_free(&r->handle);
}
