/* SPDX-License-Identifier: Apache-2.0
 * Commands that a person can paste, for this machine's distribution, chip, user and Python.
 * All of them return text in the arena of the context. */
#ifndef CAIRN_RULES_REMEDY_H
#define CAIRN_RULES_REMEDY_H

#include "rules/checks.h"
#include <stdint.h>

/* Adds "ttm.pages_limit=27787264" (or several, separated by spaces) to the kernel command line. */
const char *remedy_kernel_add(const struct check_ctx *l, const char *params);
/* Removes "amdgpu.gttsize" from it, and adds params unless that is NULL. */
const char *remedy_kernel_replace(const struct check_ctx *l, const char *name, const char *params);
/* Sets the limit for memory that a GPU may map. */
const char *remedy_limit(const struct check_ctx *l, int64_t bytes);
/* The command line; in a container, a description of what to do on the host. */
const char *remedy_on_host(const struct check_ctx *l, const char *words, const char *line);
const char *remedy_kernel_newer(const struct check_ctx *l);
const char *remedy_firmware_newer(const struct check_ctx *l);
const char *remedy_install(const struct check_ctx *l, const char *package);
/* Installs the C++ library headers that compilers need, or those of Python. */
const char *remedy_cxx_headers(const struct check_ctx *l);
const char *remedy_python_headers(const struct check_ctx *l);

/* Lets this user open a device node. */
const char *remedy_node_access(const struct check_ctx *l, const struct dev_node *node);
/* How to start the container so that it has the GPU. */
const char *remedy_container(const struct check_ctx *l);

/* "/home/a/venv/bin/python3 -m pip install …": the Python of the environment in question. A new environment
 * is created only if none is known on this machine, or if the distribution's own must not be modified. */
const char *remedy_pip(const struct check_ctx *l, const char *arguments);
/* The same for PowerShell. */
const char *remedy_pip_windows(const struct check_ctx *l, const char *arguments);
/* Installs the PyTorch wheel that has code for the GPU; NULL if no wheel has. */
const char *remedy_torch(const struct check_ctx *l);
/* The same for Windows, where pytorch.org has none; also NULL if the chip is unknown. */
const char *remedy_torch_windows(const struct check_ctx *l);

#endif
