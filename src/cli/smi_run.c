/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/smi_run.h"

#include "base/str.h"
#include "cli/commands.h"
#include "cli/print.h"
#include "cli/stop.h"
#include <poll.h>
#include <stdio.h>
#include <string.h>

int smi_begin(struct smi *s, const struct smi_target *t)
{
    struct cairn_error err = { 0 };
    if (smi_read(s, t->root, &err))
        return print_error(&err);
    smi_select(s, t->ids);
    if (!s->n_gpus && !t->silent)
        puts("No devices were found");
    if (!s->count && s->facts.n_gpus)
        fputs("cairn: HIP shows none of the AMD GPUs of this machine; `cairn gpu` shows why\n", stderr);
    else if (!s->count && s->facts.host.kfd_unreadable)
        fputs("cairn: cannot read the KFD topology in /sys/class/kfd; `cairn gpu` shows why\n", stderr);
    return s->n_gpus ? EXIT_FINE : SMI_EXIT_NOT_FOUND;
}

/* False if the reader has closed the pipe; without output, no write would detect that. */
static bool wait_ms(long ms)
{
    struct pollfd out = { .fd = fileno(stdout) };
    return poll(&out, 1, (int)ms) <= 0;
}

int smi_repeat(long period_ms, long times, int (*show)(void *with, bool first), void *with)
{
    const volatile sig_atomic_t *stopped = stop_catch();
    int code = EXIT_FINE;
    for (long i = 0; !*stopped && (!times || i < times); i++) {
        if (i && (!wait_ms(period_ms) || *stopped))
            break;
        code = show(with, !i);
        if (code || fflush(stdout) || ferror(stdout))
            break;
    }
    stop_end_line();
    return code;
}

/* Arguments may contain control characters; the newlines here are our own. */
static void put_clean(const char *text)
{
    CLEANUP(str_release) struct str clean = { 0 };
    for (const char *at = text;; at++) {
        size_t n = strcspn(at, "\n");
        str_add_clean(&clean, at, n);
        at += n;
        if (!*at)
            break;
        str_add(&clean, "\n");
    }
    fputs(clean.s, stdout);
}

int smi_refuse(const char *why)
{
    put_clean(why);
    putchar('\n');
    return SMI_EXIT_BAD_ARGUMENT;
}

int smi_refuse_option(const char *word, bool first)
{
    fputs("ERROR: Option ", stdout);
    put_clean(word);
    printf(" is not recognized. Please run 'nvidia-smi -h'%s.\n", first ? "" : " for help");
    return SMI_EXIT_BAD_OPTION;
}

int smi_refuse_word(const char *word, bool first)
{
    (void)first;
    fputs("Option \"", stdout);
    put_clean(word);
    puts("\" is not recognized.");
    return SMI_EXIT_BAD_OPTION;
}

int smi_refuse_together(const char *command, const char *why, bool linked)
{
    if (!linked)
        return options_error(command, "%s", why);
    puts("Invalid combination of input arguments. Please run 'nvidia-smi -h' for help.\n");
    return SMI_EXIT_BAD_OPTION;
}

int smi_redirect(const char *file)
{
    struct cairn_error err = { 0 };
    return print_into(file, &err) ? print_error(&err) : EXIT_FINE;
}
