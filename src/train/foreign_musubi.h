/* SPDX-License-Identifier: Apache-2.0
 * Jobs of musubi-tuner's wan_train_network.py, by its command line or its flat TOML, as keys of our own schema. */
#ifndef CAIRN_TRAIN_FOREIGN_MUSUBI_H
#define CAIRN_TRAIN_FOREIGN_MUSUBI_H

#include "train/foreign.h"

/* The words of a command: "accelerate launch … wan_train_network.py --task …", "python …", "uv run …", or the
 * options alone.  Assignments of variables in front are skipped.  A file of --config_file is read too; the command
 * line wins.  All memory is in the arena. */
int foreign_musubi_command(const char *const *words, size_t n, struct arena *a, struct foreign_job *out,
                           struct cairn_error *err);
/* A file of --config_file alone. */
int foreign_musubi_read(const char *path, struct arena *a, struct foreign_job *out, struct cairn_error *err);

#endif
