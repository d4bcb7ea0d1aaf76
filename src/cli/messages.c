/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/messages.h"

#include "base/shell_text.h"
#include "base/str.h"
#include "cli/print.h"
#include "os/terminal.h"
#include <stdio.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

enum { LEAST_WIDTH = 40, WIDTH = 100, LEAD = 7 /* "cairn: " */ };

/* Width of the terminal on stderr, at most what is good to read. */
static int talk_width(void)
{
    int width = isatty(STDERR_FILENO) ? tty_width(stderr) : WIDTH;
    return width < LEAST_WIDTH ? LEAST_WIDTH : width > WIDTH ? WIDTH : width;
}

/* While the trainer gets the keys, the terminal is raw and needs \r\n. */
static const char *line_end(void)
{
    struct termios t;
    return !tcgetattr(STDERR_FILENO, &t) && !(t.c_oflag & OPOST) ? "\r\n" : "\n";
}

/* In one write, so that the trainer's output does not interleave. */
static void put_lines(const char *lines, int indent)
{
    CLEANUP(str_release) struct str out = { 0 };
    const char *end = line_end();
    for (const char *line = lines; line && *line; line = str_next_line(line))
        str_addf(&out, "%*s%.*s%s", indent, "", (int)strcspn(line, "\n"), line, end);
    if (out.len)
        fputs(out.s, stderr);
}

/* A word longer than a line is not broken, so that a path can be copied. */
void messages_say(const char *text)
{
    CLEANUP(str_release) struct str clean = { 0 }, out = { 0 };
    str_add_clean(&clean, text, strlen(text));
    str_add(&out, "cairn: ");
    str_add_wrapped(&out, clean.s, LEAD, LEAD + 2, (size_t)talk_width());
    put_lines(out.s, 0);
}

static void sink_say(void *context, const char *text)
{
    (void)context;
    messages_say(text);
}

/* Lines that a shell can run, to be pasted as they stand; see shell_remedy. */
static void sink_commands(void *context, const char *text)
{
    (void)context;
    enum { INDENT = LEAD + 2 };
    CLEANUP(str_release) struct str lines = { 0 };
    shell_remedy(text, talk_width() - INDENT, &lines);
    put_lines(lines.s, INDENT);
}

static void sink_error(void *context, const struct cairn_error *err)
{
    (void)context;
    print_error(err);
}

const struct message_sink stderr_messages = { sink_say, sink_commands, sink_error, NULL };
