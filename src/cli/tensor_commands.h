/* SPDX-License-Identifier: Apache-2.0
 * The sub-commands of `cairn tensor`; the table of them is in cmd_tensor.c.
 *
 * argv[0] is "tensor NAME".  Each returns the exit code. */
#ifndef CAIRN_CLI_TENSOR_COMMANDS_H
#define CAIRN_CLI_TENSOR_COMMANDS_H

#include "base/cleanup.h"
#include <stdbool.h>
#include <stddef.h>

struct cairn_error;
struct json;
struct lora_basis;
struct opt_list;
struct tensor_source;

int tensor_ls(int argc, char **argv);
int tensor_check(int argc, char **argv);
int tensor_convert(int argc, char **argv);
int tensor_diff(int argc, char **argv);
int tensor_extract(int argc, char **argv);
int tensor_merge(int argc, char **argv);

/* `convert IN OUT --lora DIALECT`: rewrites the names and folds alpha; in tensor_lora.c.  dtype NULL keeps each
 * tensor's own. */
int tensor_lora_convert(const char *in, const char *out, const char *dialect, const char *dtype, bool force,
                        bool json);

/* A remark on a result, for people (json NULL: on stderr) or for programs (an array of {"id", "text"}). */
void tensor_note(struct json *notes, const char *id, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* Where the strength of a LoRA came from, and what of it was guessed. */
void tensor_note_basis(struct json *notes, const struct lora_basis *b, size_t modules);

/* Fails if one of the patterns of --only fits no tensor of the sources: that is a typing error. */
int tensor_check_patterns(const struct tensor_source *sources, size_t n, const struct opt_list *only,
                          struct cairn_error *err);

/* Says what is wrong when fewer or more than `want` operands are there; 0 if all is well, else the exit code. */
int tensor_operands(int argc, char **argv, int rest, int want, const char *what);

#endif
