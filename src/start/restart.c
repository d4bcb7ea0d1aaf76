/* SPDX-License-Identifier: Apache-2.0 */
#include "start/restart.h"
#include "base/clock.h"
#include "base/str.h"
#include "os/file.h"
#include "os/process.h"
#include "record/runs.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { GOOD_AFTER_S = 3600 };

static const struct workaround {
    const char *name;           /* in run.json */
    const char *variable, *set; /* NULL: none */
    const char *words;
} workarounds[] = {
    { NULL, NULL, NULL, "without a workaround" },
    { "own-kernels", "CAIRN_BLAS", "own",
      "with cairn's kernels instead of the vendor's BLAS libraries (CAIRN_BLAS=own)" },
    { "no-sdma", "HSA_ENABLE_SDMA", "0",
      "with cairn's kernels, and copies without the GPU's DMA engines (HSA_ENABLE_SDMA=0)" },
    { "no-interrupt", "HSA_ENABLE_INTERRUPT", "0",
      "with the same, and polling instead of GPU interrupts (HSA_ENABLE_INTERRUPT=0)" },
    { "cpu", NULL, NULL, "on the CPU (train.allow_cpu)" },
};
enum { OWN_KERNELS = 1, NO_SDMA, NO_INTERRUPT, ON_CPU };

/* "PID:TIMES:WORKAROUND:ENCODERS:why".  exec keeps the pid, so a child that inherits the variable can tell that it
 * is not for it. */
#define NAME "CAIRN_TRAIN_RESTARTS"

enum { LINK_MAX_LEN = 64 };

static struct {
    char **argv, **env;                        /* the last entry of env is `handover` */
    const char *latest;                        /* the link to the run's newest checkpoint; NULL: no run */
    char first[LINK_MAX_LEN];                  /* where it pointed when this process began */
    char handover[sizeof(struct cairn_error)]; /* CAIRN_TRAIN_RESTARTS of the new process */
    double began;
    struct restart_rung rung;
    unsigned encoders; /* on the CPU */
    const char *why;
    enum gpu_api api;
    bool allow_cpu;
    const struct message_sink *messages;
} self;

extern char **environ;

static bool applies(int workaround, enum gpu_api api, bool allow_cpu)
{
    bool of_amd = workaround == NO_SDMA || workaround == NO_INTERRUPT;
    return workaround == OWN_KERNELS || (of_amd && api == GPU_API_HIP) || (workaround == ON_CPU && allow_cpu);
}

bool restart_next(struct restart_rung *p, double lived_s, bool came_further, enum gpu_api api, bool allow_cpu)
{
    if (!p->times || (lived_s >= GOOD_AFTER_S && came_further)) {
        p->times = 1;
        return true;
    }
    for (int i = p->workaround + 1; i < (int)ARRAY_LEN(workarounds); i++)
        if (applies(i, api, allow_cpu)) {
            *p = (struct restart_rung){ p->times + 1, i };
            return true;
        }
    return false;
}

/* How many restarts in a row there can be. */
static int most_times(struct restart_rung p)
{
    while (restart_next(&p, 0, false, self.api, self.allow_cpu))
        ;
    return p.times;
}

static void read_handover(struct arena *a)
{
    const char *text = getenv(NAME);
    struct restart_rung p;
    unsigned encoders;
    int pid, at = 0;
    if (!text || sscanf(text, "%d:%d:%d:%u:%n", &pid, &p.times, &p.workaround, &encoders, &at) < 4 || !at ||
        pid != (int)getpid() || p.times < 0 || (!p.times && !encoders) || p.workaround < 0 ||
        p.workaround >= (int)ARRAY_LEN(workarounds))
        return;
    self.rung = p;
    self.encoders = encoders;
    self.why = arena_strdup(a, text + at);
}

static void read_run(const char *dir, struct arena *a)
{
    struct run_info info;
    struct cairn_error ignored = { 0 };
    int found = 0;
    if (run_info_read(dir, a, &info, &ignored))
        return;
    for (int i = 1; i < (int)ARRAY_LEN(workarounds); i++)
        if (str_eq(info.workaround, workarounds[i].name))
            found = i;
    if (!found)
        return;
    bool good = info.state == RUN_FINISHED || info.state == RUN_STOPPED;
    if (good)
        message_say(self.messages, "the last start used the workaround %s and ended well: trying without it",
                    info.workaround);
    else
        message_say(self.messages, "the last start used the workaround %s and did not finish: keeping it",
                    info.workaround);
    self.rung.workaround = good ? 0 : found;
}

/* Empty if there is no checkpoint. */
static void read_latest(char out[LINK_MAX_LEN])
{
    if (!self.latest || os_read_link(self.latest, out, LINK_MAX_LEN) < 0)
        out[0] = '\0';
}

static char **environment(struct arena *a)
{
    size_t n = 0, at = 0;
    while (environ[n])
        n++;
    char **env = ARENA_NEW(a, char *, n + 2);
    for (size_t i = 0; i < n; i++)
        if (!str_starts(environ[i], NAME "="))
            env[at++] = arena_strdup(a, environ[i]);
    env[at] = self.handover;
    return env;
}

void restart_prepare(int argc, char **argv, bool resume, const char *dir, const struct message_sink *messages,
                     struct arena *a)
{
    size_t at = 0;
    self.messages = messages;
    self.began = clock_s();
    self.latest = dir ? arena_printf(a, "%s/checkpoints/latest", dir) : NULL;
    read_latest(self.first);
    read_handover(a);
    if (!self.why && resume && dir)
        read_run(dir, a);
    self.argv = ARENA_NEW(a, char *, (size_t)argc + 3);
    self.argv[at++] = arena_strdup(a, "cairn");
    self.argv[at++] = argv[0];
    if (!resume)
        self.argv[at++] = arena_strdup(a, "--resume");
    for (int i = 1; i < argc; i++)
        self.argv[at++] = argv[i];
    self.env = environment(a);
}

void restart_apply(void)
{
    for (int i = 1; i <= self.rung.workaround; i++)
        if (workarounds[i].variable)
            setenv(workarounds[i].variable, workarounds[i].set, 1);
}

bool restart_wants_cpu(void)
{
    return self.rung.workaround == ON_CPU;
}

int restart_set_encoders(struct job_config *c, struct cairn_error *err)
{
    if (self.encoders & ENCODE_TEXT && config_set(c, "the restart", "text_encoder.device", "cpu", err))
        return -1;
    return self.encoders & ENCODE_VAE ? config_set(c, "the restart", "vae.device", "cpu", err) : 0;
}

bool restart_wants_encoder_on_cpu(enum encode_part part)
{
    return self.encoders & part;
}

const char *restart_workaround(void)
{
    return workarounds[self.rung.workaround].name;
}

const char *restart_why(void)
{
    return self.why;
}

void restart_set_device(enum gpu_api api, bool allow_cpu)
{
    self.api = api;
    self.allow_cpu = allow_cpu;
}

static void say_restart(const struct cairn_error *why, const char *from, int nth, int most, const char *words)
{
    struct cairn_error err = *why;
    char which[64] = "once";
    if (most > 1)
        snprintf(which, sizeof(which), "restart %d of at most %d", nth, most);
    cairn_hint(&err, "restarting from the %s, %s (%s)", from, words, which);
    message_error(self.messages, &err);
}

static void start_again(const struct restart_rung *p, unsigned encoders, const char *why, const char *words)
{
    snprintf(self.handover, sizeof(self.handover), NAME "=%d:%d:%d:%u:%s; restarted %s", (int)getpid(),
             p->times, p->workaround, encoders, why, words);
    os_start_again(self.argv, self.env);
    message_say(self.messages, "cannot restart: %s", strerror(errno));
}

/* An encoder only prepares data, so that no workaround is tried for it. */
void restart_encoder(const struct cairn_error *why, enum encode_part part)
{
    struct cairn_error err = *why;
    char words[64];
    snprintf(words, sizeof(words), "with %s on the CPU", encode_part_name(part));
    cairn_hint(&err, "restarting %s; the files that were made are kept", words);
    message_error(self.messages, &err);
    start_again(&self.rung, self.encoders | part, why->msg, words);
}

void restart_now(const struct cairn_error *why, bool once)
{
    struct restart_rung p = self.rung;
    unsigned encoder = encode_device_busy();
    char latest[LINK_MAX_LEN];
    if (!self.argv)
        return;
    if (encoder) {
        restart_encoder(why, (enum encode_part)encoder);
        return;
    }
    read_latest(latest);
    if (!restart_next(&p, clock_s() - self.began, strcmp(latest, self.first) != 0, self.api, self.allow_cpu))
        return;
    const char *words = workarounds[p.workaround == self.rung.workaround ? 0 : p.workaround].words;
    say_restart(why, latest[0] ? "last checkpoint" : "beginning", p.times, once ? 1 : most_times(p), words);
    start_again(&p, self.encoders, why->msg, words);
}
