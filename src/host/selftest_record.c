/* SPDX-License-Identifier: Apache-2.0 */
#include "host/selftest_record.h"

#include "base/cleanup.h"
#include "base/json.h"
#include "base/own.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

enum { MOST = 4096 };

static const char *file_name(struct arena *a, const char *arch)
{
    return arena_printf(a, "%.*s.json", (int)strcspn(arch, ":/"), arch);
}

static int open_dir(struct own_dir *d, const char *const *env, bool make, struct arena *a,
                    struct cairn_error *err)
{
    const char *root;
    if (own_path(PLACE_STATE, env, a, &root, err))
        return -1;
    return own_dir_open(d, PLACE_STATE, root, "selftest", make, err);
}

int selftest_record_write(const char *arch, const struct selftest_record *r, struct cairn_error *err)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    CLEANUP(own_dir_close) struct own_dir d = OWN_DIR_NONE;
    if (open_dir(&d, (const char *const *)environ, true, &a, err))
        return -1;
    struct json *o = json_new_object();
    json_add_int(o, "schema", 1);
    json_add_text(o, "version", r->version);
    json_add_text(o, "library", r->library);
    json_add_text(o, "date", r->date);
    json_add_bool(o, "passed", r->passed);
    char *text = json_to_string(o);
    json_free(o);
    int failed = own_file_write(&d, file_name(&a, arch), text, strlen(text), err);
    free(text);
    return failed;
}

static const char *text_of(const struct json *o, const char *key, struct arena *a)
{
    const char *text = json_text(json_get(o, key));
    return arena_strdup(a, text ? text : "");
}

bool selftest_record_read(const char *arch, const char *const *env, struct arena *a,
                          struct selftest_record *out)
{
    CLEANUP(own_dir_close) struct own_dir d = OWN_DIR_NONE;
    CLEANUP(fd_close) int fd = -1;
    struct cairn_error ignored = { 0 };
    struct json *o = NULL;
    char text[MOST];
    if (open_dir(&d, env, false, a, &ignored) ||
        own_file_open(&d, file_name(a, arch), OS_READ, &fd, &ignored))
        return false;
    ssize_t n = read(fd, text, sizeof(text));
    if (n <= 0 || json_parse(text, (size_t)n, &o, &ignored))
        return false;
    *out = (struct selftest_record){ .version = text_of(o, "version", a),
                                     .library = text_of(o, "library", a),
                                     .date = text_of(o, "date", a),
                                     .passed = json_bool(json_get(o, "passed"), false) };
    json_free(o);
    return true;
}
