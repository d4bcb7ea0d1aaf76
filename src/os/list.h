/* SPDX-License-Identifier: Apache-2.0
 * The names in a folder, in the system's order and without "." and "..". */
#ifndef CAIRN_OS_LIST_H
#define CAIRN_OS_LIST_H

struct os_list;

/* `how` is OS_NO_LINK or 0 (os/file.h).  NULL with errno. */
struct os_list *os_list_open(const char *path, unsigned how);
struct os_list *os_list_open_at(int dir, const char *path, unsigned how);
/* The same for an open folder; takes ownership of it, even on failure. */
struct os_list *os_list_of(int dir);
/* The next name, valid until the next call; NULL at the end with errno 0, on failure with errno set. */
const char *os_list_next(struct os_list *l);
/* The folder's descriptor; open as long as the list. */
int os_list_dir(const struct os_list *l);
/* For CLEANUP; accepts NULL. */
void os_list_close(struct os_list **l);

#endif
