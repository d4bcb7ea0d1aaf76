/* SPDX-License-Identifier: Apache-2.0
 * Files below the named folders: reading them, in parts too, and moving them to the trash. */
#ifndef CAIRN_WEB_FILES_H
#define CAIRN_WEB_FILES_H

#include "os/info.h"
#include "web/folder.h"
#include "web/request.h"

/* The folder and the path of a request for /files/{folder}/{path*}; NULL after it answered 404. */
const struct folder *files_folder(struct request *r, const char **path);
/* Opens a regular file that exists; -1 after it answered 404. */
int files_open(struct request *r, const struct folder *f, const char *path, struct os_info *info);
/* The value of ETag, with its quotes. */
const char *files_tag(struct request *r, const struct os_info *info);
/* Answers with an open file, which it takes: its type, its tag, the part that is asked for. */
void files_answer(struct request *r, int fd, const struct os_info *info, const char *name);
/* The folder that a path is in, created with all above it if `make`; -1 with errno. */
int files_open_parent(int dir, const char *path, bool make);

#endif
