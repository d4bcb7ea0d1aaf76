/* SPDX-License-Identifier: Apache-2.0 */
#include "run/recorder.h"

#include "base/cleanup.h"
#include "check.h"
#include "scratch.h"
#include <fcntl.h>
#include <pthread.h>

static off_t size_of(const char *path)
{
    struct stat st;
    return stat(path, &st) ? -1 : st.st_size;
}

static void keeps_every_byte(void)
{
    struct cairn_error err = { 0 };
    struct recorder *r;
    char log[512], copy[512];
    snprintf(log, sizeof(log), "%s", scratch("log"));
    snprintf(copy, sizeof(copy), "%s", scratch("copy"));
    const struct recorder_options o = { .log = log, .copy = copy, .rotate_bytes = 1 << 30 };
    REQUIRE(!recorder_start(&r, &o, &err));
    enum { N = 500 }; /* the ring is filled more than once */
    static char piece[100003];
    for (int i = 0; i < N; i++) {
        memset(piece, 'a' + i % 26, sizeof(piece));
        recorder_put(r, NULL, piece, sizeof(piece));
    }
    CHECK(recorder_trouble(r) == NULL);
    CHECK_INT(recorder_stop(r), 0);
    recorder_free(r);
    CHECK_INT(size_of(log), N * 100003);
    CHECK_INT(size_of(copy), N * 100003);
    FILE *f = fopen(log, "re");
    int bad = 0;
    for (int i = 0; f && i < N; i++)
        bad += fread(piece, 1, sizeof(piece), f) != sizeof(piece) || piece[0] != 'a' + i % 26 ||
               piece[sizeof(piece) - 1] != piece[0];
    CHECK_INT(bad, 0);
    if (f)
        fclose(f);
}

/* However far it is behind when the trainer ends. */
static void the_diagnoser_reads_to_the_end(void)
{
    struct cairn_error err = { 0 };
    CLEANUP(arena_release) struct arena a = { 0 };
    struct diagnosis says;
    struct recorder *r;
    struct diagnoser *d;
    static char piece[1 << 20];
    for (size_t i = 0; i < sizeof(piece); i++)
        piece[i] = i % 100 == 99 ? '\n' : 'x';
    REQUIRE(!diagnoser_new(&d, &err));
    const struct recorder_options o = { .diagnoser = d };
    REQUIRE(!recorder_start(&r, &o, &err));
    for (int i = 0; i < 50; i++)
        recorder_put(r, NULL, piece, sizeof(piece));
    CHECK(!recorder_saw_step(r));
    static const char end[] = "\rsteps:   1%|#  | 7/500 [00:10<12:00, 1.46s/it, avr_loss=0.1]\n"
                              "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB.\n";
    recorder_put(r, NULL, end, sizeof(end) - 1);
    CHECK_INT(recorder_stop(r), 0);
    CHECK(recorder_saw_step(r));
    recorder_free(r);
    diagnoser_finish(d, &(struct diagnose_context){ .exit_code = 1 }, &a, &says);
    CHECK_STR(says.class_id, "oom-vram");
    diagnoser_free(d);
}

static void rotates_and_keeps_the_beginning(void)
{
    struct cairn_error err = { 0 };
    struct recorder *r;
    char log[512];
    snprintf(log, sizeof(log), "%s", scratch("rotated"));
    const struct recorder_options o = { .log = log, .rotate_bytes = 1000 };
    for (int i = 0; i < 40; i++) { /* appended to by each attempt */
        char line[101];
        REQUIRE(!recorder_start(&r, &o, &err));
        snprintf(line, sizeof(line), "line %02d %91s\n", i, "");
        recorder_put(r, NULL, line, 100);
        recorder_stop(r);
        recorder_free(r);
    }
    CHECK(!strncmp(scratch_read(scratch("rotated.first")), "line 00", 7));
    CHECK(size_of(scratch("rotated")) <= 1000 && size_of(scratch("rotated.previous")) <= 1000);
    CHECK_HAS(scratch_read(log), "line 39");
    CHECK_STR(scratch_read(scratch("rotated.dropped")), "1000\n"); /* 4,000 - first, previous and last */
}

static void goes_on_without_a_log(void)
{
    struct cairn_error err = { 0 };
    struct recorder *r;
    const struct recorder_options o = { .log = "/dev/full", .copy = scratch("kept") };
    REQUIRE(!recorder_start(&r, &o, &err));
    recorder_put(r, NULL, "bytes", 5);
    const char *trouble = NULL;
    for (int i = 0; i < 1000 && !trouble; i++) {
        trouble = recorder_trouble(r);
        usleep(10000);
    }
    CHECK_HAS(trouble, "/dev/full");
    CHECK(recorder_trouble(r) == NULL); /* said once */
    recorder_put(r, NULL, " more", 5);
    recorder_stop(r);
    recorder_free(r);
    CHECK_STR(scratch_read(scratch("kept")), "bytes more");
}

/* As Python writes with PYTHONUNBUFFERED: a line and its end by themselves, and the other stream between them. */
static void lines_of_two_writers_stay_apart(void)
{
    struct cairn_error err = { 0 };
    struct recorder *r;
    const struct recorder_options o = { .copy = scratch("apart") };
    REQUIRE(!recorder_start(&r, &o, &err));
    recorder_put(r, "out", "torch 2.9.1", 11);
    recorder_put(r, "err", "RuntimeError: a\n", 16);
    recorder_put(r, "out", "\n", 1);
    recorder_put(r, "out", "step ", 5);
    recorder_put(r, "out", "1\n", 2);
    recorder_put(r, "err", "10%", 3);
    recorder_stop(r);
    recorder_free(r);
    CHECK_STR(scratch_read(scratch("apart")), "torch 2.9.1\nRuntimeError: a\n\nstep 1\n10%");
}

static void *read_late(void *path)
{
    char buf[65536];
    usleep(2500000);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && read(fd, buf, sizeof(buf)) > 0)
        ;
    close(fd);
    return NULL;
}

/* A log that blocks (here a pipe that nobody reads) holds nobody up for more than a moment. */
static void a_stuck_disk_costs_bytes_not_time(void)
{
    struct cairn_error err = { 0 };
    struct recorder *r;
    pthread_t reader;
    char path[512];
    snprintf(path, sizeof(path), "%s", scratch("fifo"));
    REQUIRE(!mkfifo(path, 0600));
    int hold = open(path, O_RDWR | O_CLOEXEC); /* so that the recorder's open does not wait */
    const struct recorder_options o = { .log = path, .rotate_bytes = 1u << 30 };
    REQUIRE(!recorder_start(&r, &o, &err));
    static char piece[1 << 20];
    for (int i = 0; i < 32 + (RECORDER_RING_BYTES >> 20); i++)
        recorder_put(r, NULL, piece, sizeof(piece));
    pthread_create(&reader, NULL, read_late, path);
    usleep(10000);
    CHECK(recorder_trouble(r) == NULL);
    uint64_t lost = recorder_stop(r);
    recorder_free(r);
    CHECK(lost > (20u << 20) && lost <= (32u << 20));
    close(hold);
    pthread_join(reader, NULL);
}

int main(void)
{
    RUN(keeps_every_byte);
    RUN(the_diagnoser_reads_to_the_end);
    RUN(rotates_and_keeps_the_beginning);
    RUN(goes_on_without_a_log);
    RUN(lines_of_two_writers_stay_apart);
    RUN(a_stuck_disk_costs_bytes_not_time);
    return check_done();
}
