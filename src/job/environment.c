/* SPDX-License-Identifier: Apache-2.0 */
#include "job/environment.h"

#include "base/str.h"
#include <fnmatch.h>
#include <string.h>

/* Of a session, of a shell, of a program around the shell; and what chooses GPUs. */
static const char *const left_out[] = {
    "_",
    "PWD",
    "OLDPWD",
    "SHLVL",
    "PS[0-9]",
    "PROMPT*",
    "LS_COLORS",
    "BASH_*",
    "ZSH_*",
    "COLUMNS",
    "LINES",
    "HIST*",
    "TERM",
    "TERM_*",
    "COLORTERM",
    "VTE_*",
    "WINDOWID",
    "TMUX*",
    "STY",
    "SSH_*",
    "GPG_*",
    "DBUS_*",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "XDG_SESSION_*",
    "XDG_RUNTIME_DIR",
    "DESKTOP_SESSION",
    "SESSION_MANAGER",
    "INVOCATION_ID",
    "JOURNAL_STREAM",
    "NOTIFY_SOCKET",
    "LISTEN_*",
    "MAKEFLAGS",
    "MAKELEVEL",
    "MFLAGS",
    "CAIRN_RUN",
    "ROCR_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "CUDA_VISIBLE_DEVICES",
    "GPU_DEVICE_ORDINAL",
};

/* Who the user is, and where things are. */
static const char *const inherited[] = { "HOME", "USER", "LOGNAME", "SHELL",  "PATH",
                                         "LANG", "LC_*", "TZ",      "TMPDIR", "XDG_*" };

static const char *const secrets[] = { "*TOKEN*",   "*SECRET*",     "*PASSW*",
                                       "*API_KEY*", "*ACCESS_KEY*", "*CREDENTIAL*" };

static bool is_one_of(const char *name, const char *const *patterns, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!fnmatch(patterns[i], name, 0))
            return true;
    return false;
}

bool environment_is_secret(const char *name)
{
    char upper[128];
    size_t n = 0;
    for (; name[n] && n + 1 < sizeof(upper); n++)
        upper[n] = name[n] >= 'a' && name[n] <= 'z' ? (char)(name[n] - 'a' + 'A') : name[n];
    upper[n] = '\0';
    return is_one_of(upper, secrets, ARRAY_LEN(secrets));
}

struct json *environment_take(const char *const *shell, const char **skipped)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    struct json *out = json_new_object();
    if (skipped)
        *skipped = NULL;
    for (; shell && *shell; shell++) {
        size_t n = strcspn(*shell, "=");
        const char *name = arena_strndup(&a, *shell, n);
        if (!(*shell)[n] || !str_is_variable(name, n) || is_one_of(name, left_out, ARRAY_LEN(left_out)))
            continue; /* such as a function of bash */
        if (str_is_utf8(*shell))
            json_add_text(out, name, *shell + n + 1);
        else if (skipped)
            *skipped = *shell;
    }
    return out;
}

static int parse(const char *text, struct json **out, struct cairn_error *err)
{
    CLEANUP(json_cleanup) struct json *v = NULL;
    if (json_parse(text, strlen(text), &v, err))
        return cairn_wrap(err, "environment");
    if (!json_is_object(v))
        return cairn_fail(err, CAIRN_EUSAGE, "environment: not an object of names and values");
    for (struct json_member m = json_first(v); m.key; m = json_next(v, m)) {
        if (!str_is_variable(m.key, strlen(m.key)))
            return cairn_fail(err, CAIRN_EUSAGE, "environment: \"%s\" cannot be the name of a variable",
                              m.key);
        if (!json_text(m.value) && !json_is_null(m.value))
            return cairn_fail(err, CAIRN_EUSAGE, "environment: the value of %s is not a text", m.key);
    }
    *out = TAKE(v);
    return 0;
}

int environment_check(const char *text, struct cairn_error *err)
{
    CLEANUP(json_cleanup) struct json *v = NULL;
    return parse(text, &v, err);
}

int environment_make(const char *text, const char *const *own, const char *cwd, struct arena *a, char ***out,
                     struct cairn_error *err)
{
    CLEANUP(json_cleanup) struct json *v = NULL;
    char **all = NULL;
    size_t n = 0;
    if (parse(text, &v, err))
        return -1;
    for (; own && *own; own++) {
        const char *name = arena_strndup(a, *own, strcspn(*own, "="));
        if (!json_get(v, name) && is_one_of(name, inherited, ARRAY_LEN(inherited)))
            *ARENA_PUSH(a, all, n) = arena_strdup(a, *own);
    }
    for (struct json_member m = json_first(v); m.key; m = json_next(v, m))
        if (json_text(m.value) && strcmp(m.key, "PWD") != 0)
            *ARENA_PUSH(a, all, n) = arena_printf(a, "%s=%s", m.key, json_text(m.value));
    *ARENA_PUSH(a, all, n) = arena_printf(a, "PWD=%s", cwd);
    *ARENA_PUSH(a, all, n) = NULL;
    *out = all;
    return 0;
}
