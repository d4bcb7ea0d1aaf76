/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/log_killed.h"

#include "base/cleanup.h"
#include "base/match.h"
#include <ctype.h>
#include <string.h>

static bool is_digit(char c)
{
    return isdigit((unsigned char)c);
}

static size_t min_pids(size_t n)
{
    return n < LOG_PIDS ? n : LOG_PIDS;
}

static bool has_pid(const struct log_pids *p, long pid)
{
    for (size_t i = 0; i < min_pids(p->n); i++)
        if (p->pid[i] == pid)
            return true;
    return false;
}

static void add_pid(struct log_pids *p, long pid)
{
    if (!has_pid(p, pid))
        p->pid[p->n++ % LOG_PIDS] = pid;
}

/* Adds the number at s and returns the length of its text; 0: none that could be a process. */
static size_t take_pid(struct log_pids *p, const char *s, size_t n)
{
    enum { MOST_DIGITS = 7 }; /* Linux has at most 4194304 */
    size_t len = 0;
    long pid = 0;
    for (; len < n && len <= MOST_DIGITS && is_digit(s[len]); len++)
        pid = pid * 10 + (s[len] - '0');
    if (pid < 2 || len > MOST_DIGITS)
        return 0;
    add_pid(p, pid);
    return len;
}

/* The kernel keeps 15 bytes of a name. */
static bool is_trainer(const char *name, size_t n)
{
    static const char *const starts[] = { "python",   "pt_main_thread", "pt_data_",  "ray::",
                                          "torchrun", "accelerate",     "deepspeed", "cairn" };
    for (size_t i = 0; i < ARRAY_LEN(starts); i++)
        if (n >= strlen(starts[i]) && !memcmp(name, starts[i], strlen(starts[i])))
            return true;
    return false;
}

void log_killed_see(struct log_killed *k, const char *s, size_t n, size_t at)
{
    static const char word[] = " process ";
    const char *found = memmem(s + at, n - at, word, strlen(word));
    size_t i = found ? (size_t)(found - s) + strlen(word) : n;
    if (!take_pid(&k->killed, s + i, n - i))
        return;
    const char *name = memchr(s + i, '(', n - i);
    if (name)
        k->trainer |= is_trainer(name + 1, (size_t)(s + n - name) - 1);
}

/* "[   12.345678] ", or words of its lines that name processes. */
static bool is_kernels(const char *s, size_t n)
{
    size_t i = 1;
    while (i < n && (is_digit(s[i]) || s[i] == ' ' || s[i] == '.'))
        i++;
    bool stamp = n > 4 && s[0] == '[' && i < n && s[i] == ']' && memchr(s, '.', i);
    return stamp || match_any(s, n, " kernel: |oom-kill:| Comm: | comm=|amdgpu");
}

/* "pid 4242", "pid=4242", "(pid: 4242)", "pid(s) 4242, 4243", "subprocess 4242" */
void log_killed_tell(struct log_killed *k, const char *s, size_t n, size_t at)
{
    if ((at && isalnum((unsigned char)s[at - 1])) || is_kernels(s, n))
        return;
    while (at < n && isalpha((unsigned char)s[at]))
        at++;
    while (at < n && strchr(" :=(s)", s[at]))
        at++;
    for (size_t len; (len = take_pid(&k->told, s + at, n - at)); at += 2) {
        at += len;
        if (n - at < 3 || memcmp(s + at, ", ", 2) != 0)
            return;
    }
}

bool log_killed_told(const struct log_killed *k)
{
    for (size_t i = 0; i < min_pids(k->killed.n); i++)
        if (has_pid(&k->told, k->killed.pid[i]))
            return true;
    return false;
}
