/* SPDX-License-Identifier: Apache-2.0
 * Words of a shell script, expanded as far as that can be done without a shell; private to script*.c.
 *
 * Variables, `~`, the usual ways to write the script's own folder, and a few substitutions are
 * known.  A word with anything else in it is marked as unknown; what it was built from so far is kept. */
#ifndef CAIRN_HOST_SCRIPT_WORDS_H
#define CAIRN_HOST_SCRIPT_WORDS_H

#include "host/command_work.h"

struct script {
    struct walk *w;
    const char *at;          /* what comes next */
    const char *name;        /* $0; NULL: a text without a file */
    const char *const *args; /* $1 … */
    const char *heredoc;     /* its here-document follows this line, up to this word; NULL: none */
    int depth;               /* of substitutions inside of substitutions */
};

struct word {
    const char *text;
    bool unknown;
    bool vanishes; /* empty, and not in quotes: it is no word of the command */
};

/* What ends a statement. */
enum ends { ENDS_TEXT, ENDS_LINE, ENDS_AND, ENDS_OR, ENDS_PIPE, ENDS_OPEN, ENDS_CLOSE, ENDS_CASE };

struct statement {
    struct word *words;
    size_t n;
    enum ends ends;
};

/* False after the last. Redirections and comments are skipped; "$@" expands to as many words as there are
 * arguments. */
bool script_next(struct script *s, struct statement *out);
/* The body of a function whose name was read; steps past it; begun: its brace was read too. NULL: there is
 * none. */
const char *script_body(struct script *s, bool begun);
/* NAME=value: the length of the name; 0: the word is no assignment. */
size_t script_assigned(const char *word);

#endif
