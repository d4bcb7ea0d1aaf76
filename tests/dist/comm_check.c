/* SPDX-License-Identifier: Apache-2.0
 * comm_check [fail|late|lost]: a rank under mpirun that checks what ranks do together, against sums of its own.
 *
 * Prints one line on rank 0.  fail: the last rank fails while the others wait.  late: it comes after a second, which is said.
 * lost: it never comes. */
#include "base/hash.h"
#include "base/splitmix.h"
#include "dist/comm.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct comm *comm;
static struct cairn_error err;

static int give_up(const char *what)
{
    fprintf(stderr, "rank %d: %s: %s\n", comm_rank(comm), what, err.msg);
    comm_fail(comm, &err);
    comm_close(comm, 1);
    return 1;
}

/* Number i of a rank, with all its bits in use. */
static float number(int rank, size_t i)
{
    uint64_t bits = splitmix_mix((uint64_t)(rank + 1) << 40 ^ i);
    return (float)(bits >> 40) / 65536 - 100;
}

static float tree(int first, int n, size_t i)
{
    return n == 1 ? number(first, i) : tree(first, n / 2, i) + tree(first + n / 2, n / 2, i);
}

static double plain(int n, size_t i)
{
    double sum = 0;
    for (int r = 0; r < n; r++)
        sum += (double)number(r, i);
    return sum;
}

/* Every number for a few ranks, some for many. */
static size_t count_wrong(const float *x, size_t n)
{
    int size = comm_size(comm);
    size_t wrong = 0;
    for (size_t i = 0; i<n; i += n> 100000 ? 97 : 1) {
        float want = size & (size - 1) ? 0 : tree(0, size, i);
        double off = (double)x[i] - plain(size, i);
        wrong += size & (size - 1) ? off > 1e-2 || off < -1e-2 : memcmp(&want, &x[i], sizeof(want)) != 0;
    }
    return wrong;
}

static int check_sum(size_t n)
{
    float *x = malloc(n * sizeof(*x) + 1);
    uint64_t hashes[64][2], mine[2];
    for (size_t i = 0; i < n; i++)
        x[i] = number(comm_rank(comm), i);
    if (comm_sum(comm, x, n, &err))
        return -1;
    size_t wrong = count_wrong(x, n);
    struct hash h;
    hash_init(&h);
    hash_add(&h, x, n * sizeof(*x));
    hash_end(&h, mine);
    free(x);
    if (comm_gather(comm, mine, sizeof(mine), hashes, &err))
        return -1;
    for (int r = 0; r < comm_size(comm); r++)
        wrong += memcmp(hashes[r], mine, sizeof(mine)) != 0;
    return wrong ? cairn_fail(&err, CAIRN_EFORMAT, "%zu of %zu sums are wrong", wrong, n) : 0;
}

static int check_others(void)
{
    int size = comm_size(comm), rank = comm_rank(comm), all[64];
    char text[] = "none";
    double parts[64] = { 0 };
    parts[rank] = 0.1 * (rank + 1);
    if (!rank)
        memcpy(text, "zero", sizeof(text));
    if (comm_gather(comm, &rank, sizeof(rank), all, &err) || comm_broadcast(comm, text, sizeof(text), &err) ||
        comm_merge(comm, parts, (size_t)size, &err))
        return -1;
    for (int r = 0; r < size; r++)
        if (all[r] != r || parts[r] != 0.1 * (r + 1))
            return cairn_fail(&err, CAIRN_EFORMAT, "rank %d has sent %d and %g", r, all[r], parts[r]);
    return strcmp(text, "zero") ? cairn_fail(&err, CAIRN_EFORMAT, "rank 0 has sent %s", text) : 0;
}

static void say_late(void *to, int rank, double seconds)
{
    (void)to, (void)seconds;
    printf("waiting for rank %d\n", rank);
    fflush(stdout);
}

/* What rank 0 prints is its error; 1 is the exit status of all. */
static int check_trouble(const char *kind)
{
    int last = comm_size(comm) - 1, all[64];
    comm_set_limit(comm, 3);
    comm_set_late(comm, (struct comm_late){ .after_s = 0.3, .say = comm_rank(comm) ? NULL : say_late });
    if (comm_rank(comm) == last) {
        sleep(strcmp(kind, "late") ? 0 : 1);
        sleep(strcmp(kind, "lost") ? 0 : 20);
        if (!strcmp(kind, "fail")) {
            cairn_fail(&err, CAIRN_EIO, "a file is gone");
            comm_fail(comm, &err);
            comm_close(comm, 1);
        }
    }
    if (!comm_gather(comm, &last, sizeof(last), all, &err))
        return 0;
    if (!comm_rank(comm)) {
        printf("%s\n", err.msg);
        fflush(stdout);
    }
    comm_fail(comm, &err);
    comm_close(comm, 1);
    return 1;
}

int main(int argc, char **argv)
{
    static const size_t sizes[] = { 0, 1, 7, 4095, 4097, 100000, 1 << 20, 3000001 };
    struct world w;
    if (world_find(&w, &err) || comm_open(&w, &comm, &err)) {
        fprintf(stderr, "%s%s%s\n", err.msg, err.hint[0] ? "; " : "", err.hint);
        return 2;
    }
    if (argc > 1 && check_trouble(argv[1]))
        return 1;
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
        if (check_sum(sizes[i]))
            return give_up("sum");
    if (check_others())
        return give_up("other calls");
    if (!comm_rank(comm))
        printf("%d ranks by %s: right\n", comm_size(comm), comm_version(comm));
    comm_close(comm, 0);
    return 0;
}
