/* SPDX-License-Identifier: Apache-2.0
 * The sub-commands of `cairn tensor`; the table of them is in cmd_tensor.c.
 *
 * argv[0] is "tensor NAME".  Each returns the exit code. */
#ifndef CAIRN_CLI_TENSOR_COMMANDS_H
#define CAIRN_CLI_TENSOR_COMMANDS_H

#include <stdbool.h>
#include <stddef.h>

struct cairn_error;
struct opt_list;
struct st_tensor;
struct tensor_notes;
struct tensor_source;

int tensor_ls(int argc, char **argv);
int tensor_check(int argc, char **argv);
int tensor_convert(int argc, char **argv);
int tensor_diff(int argc, char **argv);
int tensor_extract(int argc, char **argv);
int tensor_merge(int argc, char **argv);

/* `convert IN OUT --lora DIALECT`: rewrites the names and folds alpha; in tensor_lora.c.  dtype NULL keeps
 * each tensor's own. */
int tensor_lora_convert(const char *in, const char *out, const char *dialect, const char *dtype, bool force,
                        bool json);

/* Remarks on a result, on stderr; in tensor_lora.c. */
void tensor_print_notes(const struct tensor_notes *n);

enum { TENSOR_SHAPE_TEXT = 64 };
/* "[16, 21, 60, 104]"; one that is too long ends in "...]".  buf holds TENSOR_SHAPE_TEXT bytes and is
 * returned. */
const char *tensor_shape_text(const struct st_tensor *t, char *buf);

/* Fails if a pattern of --only matches no tensor of the sources: probably a typing error. */
int tensor_check_patterns(const struct tensor_source *sources, size_t n, const struct opt_list *only,
                          struct cairn_error *err);

/* Reports an error unless there are exactly `want` operands; returns 0 or the exit code. */
int tensor_operands(int argc, char **argv, int rest, int want, const char *what);

#endif
