/* SPDX-License-Identifier: Apache-2.0
 * The user's terminal while a trainer has a terminal of its own: every key goes to the trainer as it is
 * typed.
 *
 * Only the foreground may change a terminal; in the background nothing is touched.  terminal_restore may
 * be called from a process that has a copy, and as often as one likes. */
#ifndef CAIRN_RUN_TERMINAL_H
#define CAIRN_RUN_TERMINAL_H

#include <stdbool.h>
#include <sys/types.h>
#include <termios.h>

struct terminal {
    int fd; /* -1: there is none */
    bool raw;
    bool fresh; /* raw, and nothing has been read since */
    struct termios before;
};

/* The terminal on this descriptor; fd is -1 in *t if it is none.  Takes a copy of the descriptor. */
void terminal_open(struct terminal *t, int fd);
void terminal_close(struct terminal *t); /* restores it */
/* Are we the ones who may use it now? */
bool terminal_is_ours(const struct terminal *t);
void terminal_make_raw(struct terminal *t);
void terminal_restore(const struct terminal *t);
/* Keys, as read(2) gives them.  An end of input that was typed before the terminal was raw is that key
 * again: the kernel makes a zero of it. */
ssize_t terminal_read(struct terminal *t, char *keys, size_t size);
/* Gives another terminal this one's size. */
void terminal_copy_size(const struct terminal *from, int to);
/* Makes a process group the one that may use it. */
void terminal_give(const struct terminal *t, int group);

/* A new terminal pair with this one's settings and size; both ends are closed on exec.  False: none can be
 * had. */
bool terminal_new_pair(const struct terminal *like, int *master, int *slave);

/* Does the terminal behind a master take no output now?  Ctrl-S makes it so. */
bool terminal_is_held_up(int master);
/* What a key does in the terminal behind a master: 'c' interrupts or quits, 'z' suspends the group that is
 * in front, 0 neither. */
char terminal_key(int master, unsigned char key);

#endif
