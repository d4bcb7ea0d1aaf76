/* SPDX-License-Identifier: Apache-2.0 */
#include "os/watch.h"

#include "os/fault.h"
#include <errno.h>
#include <stddef.h>
#include <sys/inotify.h>
#include <unistd.h>

int os_watch_open(void)
{
    return fault_hit() ? -1 : inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
}

int os_watch_add(int watch, const char *folder)
{
    enum {
        CHANGES = IN_CREATE | IN_MODIFY | IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE |
                  IN_DELETE_SELF | IN_ONLYDIR
    };
    return fault_hit() ? -1 : inotify_add_watch(watch, folder, CHANGES);
}

void os_watch_remove(int watch, int folder)
{
    inotify_rm_watch(watch, folder);
}

void os_watch_read(int watch, void (*changed)(void *context, struct os_watch_event e), void *context)
{
    char buf[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
    ssize_t n;
    while ((n = read(watch, buf, sizeof(buf))) > 0)
        for (char *at = buf; at < buf + n;) {
            const struct inotify_event *e = (const struct inotify_event *)at;
            changed(context, (struct os_watch_event){ e->wd, e->len ? e->name : NULL });
            at += sizeof(*e) + e->len;
        }
}
