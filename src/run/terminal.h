/* SPDX-License-Identifier: Apache-2.0
 * The user's terminal while the trainer has its own: every key goes to the trainer as it is typed.
 *
 * Only the foreground may change a terminal; in the background these functions do nothing.
 * terminal_restore may be called repeatedly, and from a process that has a copy. */
#ifndef CAIRN_RUN_TERMINAL_H
#define CAIRN_RUN_TERMINAL_H

#include <stdbool.h>
#include <sys/types.h>
#include <termios.h>

struct terminal {
    int fd; /* -1: none */
    bool raw;
    bool fresh; /* raw, and nothing has been read since */
    struct termios before;
};

/* The terminal on this descriptor, which is duplicated; t->fd is -1 if it is no terminal. */
void terminal_open(struct terminal *t, int fd);
void terminal_close(struct terminal *t); /* restores it */
/* Are we in the foreground? */
bool terminal_is_ours(const struct terminal *t);
/* It was closed, as by a window or a connection that ends. */
bool terminal_is_gone(const struct terminal *t);
void terminal_make_raw(struct terminal *t);
void terminal_restore(const struct terminal *t);
/* Keys, as from read(2).  An end of input typed before raw mode, which the kernel returns as zero bytes,
 * becomes that key again. */
ssize_t terminal_read(struct terminal *t, char *keys, size_t size);
/* Gives another terminal this one's size. */
void terminal_copy_size(const struct terminal *from, int to);
/* Puts a process group in the foreground. */
void terminal_give(const struct terminal *t, int group);

/* A new pseudoterminal with the same settings and size; both ends are closed on exec.  False: none is
 * available. */
bool terminal_new_pair(const struct terminal *like, int *master, int *slave);

/* Is output of the terminal of this master stopped (Ctrl-S)? */
bool terminal_is_held_up(int master);
/* What a key does in the terminal of this master: 'c' interrupts or quits, 'z' suspends the foreground
 * group, 0 neither. */
char terminal_key(int master, unsigned char key);

#endif
