/* SPDX-License-Identifier: Apache-2.0
 * Which GPUs a job gets.
 *
 * A lane is a GPU, named by its HIP index, or the CPU.  Each lane runs one job at a time; a job may take
 * several.  Lists of lanes are texts: "0", "0,1", "cpu". */
#ifndef CAIRN_JOB_LANES_H
#define CAIRN_JOB_LANES_H

#include "base/arena.h"
#include "base/error.h"
#include "host/facts.h"
#include "job/job_row.h"

/* The wish of a user, "auto", "cpu" or numbers, in one spelling: rising, each once.  Fails if it is none, if the
 * machine has no such GPU (CAIRN_ELACK), or if it is several for a kind that uses one. */
int lanes_parse(const char *wish, enum job_kind kind, const struct facts *f, struct arena *a,
                const char **out, struct cairn_error *err);
/* What that wish gets while these lists are taken; NULL: it has to wait. */
const char *lanes_choose(const char *wish, const struct facts *f, const char *const *taken, size_t n_taken,
                         struct arena *a);

#endif
