/* SPDX-License-Identifier: Apache-2.0
 * Commands that a person can paste, for this machine's distribution, chip, user and Python.
 * All of them return text in the look's arena. */
#ifndef CAIRN_RULES_REMEDY_H
#define CAIRN_RULES_REMEDY_H

#include "rules/checks.h"
#include <stdint.h>

/* Adds "ttm.pages_limit=27787264" (or several, separated by spaces) to the kernel command line. */
const char *remedy_kernel_add(const struct check_ctx *l, const char *params);
/* Takes "amdgpu.gttsize" away from it, and adds params unless that is NULL. */
const char *remedy_kernel_replace(const struct check_ctx *l, const char *name, const char *params);
/* Sets the limit of memory that a GPU may map. */
const char *remedy_limit(const struct check_ctx *l, int64_t bytes);
/* The line; in a container, what somebody has to do outside of it, in words. */
const char *remedy_on_host(const struct check_ctx *l, const char *words, const char *line);
const char *remedy_kernel_newer(const struct check_ctx *l);
const char *remedy_firmware_newer(const struct check_ctx *l);
const char *remedy_install(const struct check_ctx *l, const char *package);
/* Installs the headers of the C++ library that compilers look in, or those of Python. */
const char *remedy_cxx_headers(const struct check_ctx *l);
const char *remedy_python_headers(const struct check_ctx *l);

/* Lets this user open a device node. */
const char *remedy_node_access(const struct check_ctx *l, const struct dev_node *node);
/* How to start the container so that it has the GPU. */
const char *remedy_container(const struct check_ctx *l);

/* "/home/a/venv/bin/python3 -m pip install …": the Python of the environment that it is about.  A new environment is
 * made only where none is known on this machine, or where the distribution's own must not be changed. */
const char *remedy_pip(const struct check_ctx *l, const char *arguments);
/* The same for PowerShell. */
const char *remedy_pip_windows(const struct check_ctx *l, const char *arguments);
/* Installs the PyTorch wheel that carries code for the GPU; NULL when no wheel does. */
const char *remedy_torch(const struct check_ctx *l);
/* The same for Windows, where pytorch.org has none; NULL too when the chip is not known. */
const char *remedy_torch_windows(const struct check_ctx *l);

#endif
