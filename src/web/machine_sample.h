/* SPDX-License-Identifier: Apache-2.0
 * One look at the figures of the machine that change, and a ring of the last ten minutes.
 *
 * An unknown value is NAN, and null in JSON.  A card that sleeps is not woken: its sensors are unknown then. */
#ifndef CAIRN_WEB_MACHINE_SAMPLE_H
#define CAIRN_WEB_MACHINE_SAMPLE_H

#include "base/arena.h"
#include "base/error.h"
#include "base/json.h"
#include "host/facts.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MACHINE_GPUS = 64, MACHINE_RING = 600, MACHINE_KEPT_S = 600 };

/* A figure of a GPU, or of the host. */
struct machine_figure {
    const char *key;
    size_t at; /* of a struct num in struct gpu_facts */
    double unit;
};
extern const struct machine_figure machine_figures[];
extern const size_t n_machine_figures;
enum { MACHINE_CPU, MACHINE_MEMORY_TOTAL, MACHINE_MEMORY_AVAILABLE, MACHINE_HOST };

struct machine_sample {
    int64_t time_ms; /* since 1970 */
    double host[MACHINE_HOST];
    size_t n_gpus;
    bool *asleep;  /* of each GPU */
    double *value; /* of each GPU, each figure */
};

/* The busy share of the CPUs is that since the last look. */
struct machine_cpu {
    uint64_t busy, all;
};

/* Allocates; machine_sample_release frees. */
void machine_sample_take(struct machine_sample *s, const struct facts *f, struct machine_cpu *cpu,
                         int64_t time_ms);
void machine_sample_release(struct machine_sample *s);
/* {"time_ms","host":{…},"gpus":[{"pci","asleep",…,"processes":[…]}]} */
struct json *machine_sample_report(const struct machine_sample *s, const struct facts *f);

struct machine_ring {
    struct machine_sample sample[MACHINE_RING];
    size_t first, n;
};
/* Takes the sample.  After a GPU came or went the older ones mean something else, and go. */
void machine_ring_add(struct machine_ring *r, struct machine_sample *s);
/* The samples since that time, one array per figure. */
struct json *machine_ring_report(const struct machine_ring *r, int64_t since_ms);
void machine_ring_release(struct machine_ring *r);

#endif
