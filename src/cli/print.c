/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/print.h"

#include "base/str.h"
#include "cli/commands.h"
#include "gpu/gpu.h"
#include "os/file.h"
#include "os/terminal.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Written once by the option parser, before anything is printed. */
static int color_mode = -1; /* -1 auto, 0 never, 1 always */

bool print_color_mode(const char *mode)
{
    static const char *const modes[] = { "auto", "never", "always" };
    for (int i = 0; i < 3; i++) {
        if (strcmp(mode, modes[i]))
            continue;
        color_mode = i - 1;
        return true;
    }
    return false;
}

static bool color_is_on(void)
{
    if (color_mode >= 0)
        return color_mode;
    const char *no = getenv("NO_COLOR");
    return tty_obeys(stdout) && !(no && *no);
}

const char *print_color(enum print_color c)
{
    static const char *const escapes[] = {
        [COLOR_PLAIN] = "\033[0m",  [COLOR_BOLD] = "\033[1m",    [COLOR_DIM] = "\033[2m",
        [COLOR_GREEN] = "\033[32m", [COLOR_YELLOW] = "\033[33m", [COLOR_RED] = "\033[31m",
        [COLOR_CYAN] = "\033[36m",
    };
    return color_is_on() ? escapes[c] : "";
}

static const char *output_name = "standard output";

int print_into(const char *file, struct cairn_error *err)
{
    if (!file)
        return 0;
    output_name = file;
    return os_stream_into(stdout, file) ? cairn_fail_errno(err, "open %s", file) : 0;
}

const char *print_output_name(void)
{
    return output_name;
}

static void put_clean(FILE *out, const char *s, size_t len)
{
    CLEANUP(str_release) struct str clean = { 0 };
    str_add_clean(&clean, s, len);
    fputs(clean.s, out);
}

/* Columns of UTF-8 text, one for each character: good enough for what we print. */
static int columns(const char *s, size_t len)
{
    int n = 0;
    for (size_t i = 0; i < len; i++)
        n += ((unsigned char)s[i] & 0xc0) != 0x80;
    return n;
}

int print_columns(const char *text)
{
    return columns(text, strlen(text));
}

void print_padded(FILE *out, const char *text, int width)
{
    CLEANUP(str_release) struct str cell = { 0 };
    str_add_padded(&cell, text, width);
    fputs(cell.s, out);
}

void print_cell(FILE *out, const char *text, int width)
{
    CLEANUP(str_release) struct str cell = { 0 };
    str_add_cell(&cell, text, width);
    fputs(cell.s, out);
}

void print_cut(FILE *out, const char *text, int width)
{
    bool cut = print_columns(text) > width;
    print_cell(out, text, cut ? width - 3 : width);
    if (cut)
        fputs("...", out);
}

void print_wrapped_at(FILE *out, const char *text, int column, int indent, int width)
{
    bool begins = true; /* the next word starts the line, so it needs no space */
    for (const char *p = text; *p;) {
        size_t n = strcspn(p, " \n");
        int w = columns(p, n);
        bool full = column > indent && column + !begins + w > width;
        if (*p == '\n' || full) {
            fprintf(out, "\n%*s", indent, "");
            column = indent;
            begins = true;
            p += *p == '\n';
            continue;
        }
        if (!begins)
            fputc(' ', out);
        put_clean(out, p, n);
        column += !begins + w;
        begins = false;
        p += n;
        p += strspn(p, " ");
    }
    fputc('\n', out);
}

void print_wrapped(FILE *out, const char *text, int indent, int width)
{
    print_wrapped_at(out, text, indent, indent, width);
}

int print_width(void)
{
    int width = isatty(STDOUT_FILENO) ? tty_width(stdout) : 100;
    return width < 40 ? 40 : width > 100 ? 100 : width;
}

/* Newlines may come from file names, so they are escaped.  In a file the message stays one line, for grep. */
static void print_message(const char *before, const char *text)
{
    CLEANUP(str_release) struct str clean = { 0 };
    str_add_clean(&clean, text, strlen(text));
    fputs(before, stderr);
    if (isatty(STDERR_FILENO))
        print_wrapped_at(stderr, clean.s, print_columns(before), 2, tty_width(stderr));
    else
        fprintf(stderr, "%s\n", clean.s);
}

void print_report(struct json *v)
{
    json_print(v, stdout);
    json_free(v);
}

int print_error(const struct cairn_error *err)
{
    print_message("cairn: ", err->msg);
    if (err->hint[0])
        print_message("  ", err->hint);
    return exit_code_of(err);
}

void print_runtime(FILE *out, const struct gpu_info *g, const char *before)
{
    if (g->api == GPU_API_HOST || !g->library[0])
        return;
    fputs(before, out);
    print_padded(out, g->library, 0);
    if (g->source[0]) {
        fputs(" (", out);
        print_padded(out, g->source, 0);
        fputc(')', out);
    }
    fputc('\n', out);
    if (!g->passed_over[0])
        return;
    fprintf(out, "%snot used: ", before);
    print_padded(out, g->passed_over, 0);
    fputc('\n', out);
}
