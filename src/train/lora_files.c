/* SPDX-License-Identifier: Apache-2.0 */
#include "train/lora_files.h"
#include "base/file.h"
#include "base/parse.h"
#include "base/str.h"
#include "os/file.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_MOST = 4096, PIECE = 1 << 20, DIGITS_MOST = 18 };

static const char extension[] = ".safetensors";
static const char *const suffixes[] = { "", "_high_noise", "_low_noise" };

/* What comes between the name and the number, and how many digits that has at least. */
static const struct form {
    const char *before;
    int digits;
} forms[][LORA_FILES_LAST] = {
    [LORA_FILES_AI_TOOLKIT] = { [LORA_FILES_STEP] = { "_", 9 }, [LORA_FILES_EPOCH] = { NULL, 0 } },
    [LORA_FILES_MUSUBI] = { [LORA_FILES_STEP] = { "-step", 8 }, [LORA_FILES_EPOCH] = { "-", 6 } },
};

/* ---- names ---- */

void lora_files_name(const struct lora_files *f, const struct lora_files_stamp *s, char *out, size_t size)
{
    if (s->kind == LORA_FILES_LAST) {
        snprintf(out, size, "%s%s%s", f->name, s->suffix, extension);
        return;
    }
    const struct form *form = &forms[f->style][s->kind];
    snprintf(out, size, "%s%s%0*" PRIu64 "%s%s", f->name, form->before, form->digits, s->number, s->suffix,
             extension);
}

/* The name is made again from what was read, so that only ours match. */
static bool parse_as(const struct lora_files *f, enum lora_files_kind kind, const char *file,
                     struct lora_files_stamp *out)
{
    const char *before = forms[f->style][kind].before, *at = file + strlen(f->name);
    char digits[DIGITS_MOST + 1], again[PATH_MOST];
    if (!before || !str_starts(file, f->name) || !str_starts(at, before))
        return false;
    at += strlen(before);
    size_t n = strspn(at, "0123456789");
    if (!n || n > DIGITS_MOST)
        return false;
    snprintf(digits, sizeof(digits), "%.*s", (int)n, at);
    *out = (struct lora_files_stamp){ .kind = kind };
    if (!cairn_parse_u64(digits, &out->number))
        return false;
    for (size_t i = 0; i < ARRAY_LEN(suffixes); i++) {
        out->suffix = suffixes[i];
        lora_files_name(f, out, again, sizeof(again));
        if (!strcmp(again, file))
            return true;
    }
    return false;
}

bool lora_files_parse(const struct lora_files *f, const char *file, struct lora_files_stamp *out)
{
    return parse_as(f, LORA_FILES_STEP, file, out) || parse_as(f, LORA_FILES_EPOCH, file, out);
}

/* ---- files ---- */

static int copy_bytes(int fd, const char *from, uint64_t size, struct file_out *out, struct cairn_error *err)
{
    CLEANUP(mem_free) char *bytes = malloc(PIECE);
    if (!bytes)
        return cairn_fail(err, CAIRN_ENOMEM, "no memory to copy %s", from);
    for (uint64_t at = 0, n; at < size; at += n) {
        n = size - at < PIECE ? size - at : PIECE;
        if (file_read_at(fd, from, bytes, n, at, err) || file_out_write(out, bytes, n, at, err))
            return -1;
    }
    return file_out_commit(out, err);
}

static int copy(const char *from, const char *to, struct cairn_error *err)
{
    CLEANUP(file_out_close) struct file_out out = FILE_OUT_NONE;
    uint64_t size;
    int fd;
    if (file_open(from, &fd, &size, err))
        return -1;
    int r = file_out_open(&out, to, size, true, err) || copy_bytes(fd, from, size, &out, err) ? -1 : 0;
    close(fd);
    return r;
}

/* Renaming one link of a file to another does nothing, so the temporary name is removed in any case. */
static int link_over(const char *from, const char *to)
{
    char temp[PATH_MOST];
    snprintf(temp, sizeof(temp), "%s.new", to);
    os_remove(temp);
    int r = os_make_hard_link(from, temp) || os_rename(temp, to) ? -1 : 0;
    os_remove(temp);
    return r;
}

int lora_files_put(const struct lora_files *f, const struct lora_files_stamp *s, const char *from,
                   struct cairn_error *err)
{
    char name[PATH_MOST], path[PATH_MOST];
    lora_files_name(f, s, name, sizeof(name));
    snprintf(path, sizeof(path), "%s/%s", f->dir, name);
    return link_over(from, path) ? copy(from, path, err) : 0;
}

static int downwards(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x < y) - (x > y);
}

/* The smallest number that is kept. */
static uint64_t oldest_kept(uint64_t *numbers, size_t n, size_t keep)
{
    size_t different = 0;
    if (n)
        qsort(numbers, n, sizeof(*numbers), downwards);
    for (size_t i = 0; i < n && keep; i++) {
        different += !i || numbers[i] != numbers[i - 1];
        if (different > keep)
            return numbers[i] + 1;
    }
    return 0;
}

void lora_files_rotate(const struct lora_files *f, enum lora_files_kind kind, uint64_t newest, size_t keep)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    struct lora_files_stamp s;
    char **names;
    size_t n, n_numbers = 0;
    if (kind == LORA_FILES_LAST || file_names(f->dir, &a, &names, &n))
        return;
    uint64_t *numbers = ARENA_NEW(&a, uint64_t, n + 1);
    for (size_t i = 0; i < n; i++)
        if (parse_as(f, kind, names[i], &s) && s.number <= newest)
            numbers[n_numbers++] = s.number;
    uint64_t oldest = oldest_kept(numbers, n_numbers, keep);
    for (size_t i = 0; i < n; i++)
        if (parse_as(f, kind, names[i], &s) && (s.number > newest || s.number < oldest))
            os_remove(arena_printf(&a, "%s/%s", f->dir, names[i]));
}
