/* SPDX-License-Identifier: Apache-2.0
 * Changes in folders, as the kernel reports them.  A network file system reports only what this machine does. */
#ifndef CAIRN_OS_WATCH_H
#define CAIRN_OS_WATCH_H

struct os_watch_event {
    int folder;       /* what os_watch_add returned */
    const char *name; /* of the file in it; NULL: the folder itself is gone, or events were lost */
};

/* A descriptor that becomes readable when something changed.  Here and below: -1 with errno. */
int os_watch_open(void);
/* Reports files that are created, written, renamed or removed in the folder. */
int os_watch_add(int watch, const char *folder);
void os_watch_remove(int watch, int folder);
/* Calls `changed` for each change that waits. */
void os_watch_read(int watch, void (*changed)(void *context, struct os_watch_event e), void *context);

#endif
