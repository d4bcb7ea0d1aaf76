/* SPDX-License-Identifier: Apache-2.0
 * What a log says of the machine and of the run, beside its errors: chips, versions, variables,
 * figures, progress.
 *
 * Fixed size; text that does not fit is cut.  Fed by the diagnoser with the pieces of log_lines. */
#ifndef CAIRN_RULES_LOG_FACTS_H
#define CAIRN_RULES_LOG_FACTS_H

#include "host/facts.h"
#include "rules/issue_rules.h"
#include "rules/log_killed.h"
#include "rules/log_progress.h"
#include "rules/log_python.h"
#include "rules/log_stack.h"
#include "rules/log_trace.h"

enum { LOG_GFX = 16, LOG_MOST_GFX = 8, LOG_TEXT = 64, LOG_MOST_GIDS = 8 };

struct log_gfx {
    char name[LOG_MOST_GFX][LOG_GFX];
    size_t n;
};

/* Variables whose value in the log matters. */
enum log_var {
    LOG_OVERRIDE,
    LOG_ROCR_VISIBLE,
    LOG_HIP_VISIBLE,
    LOG_CUDA_VISIBLE,
    LOG_ALLOC_HIP,
    LOG_ALLOC_CUDA,
    LOG_ALLOC_NEW,
    LOG_NO_CACHING_HIP,
    LOG_NO_CACHING_CUDA,
    LOG_AOTRITON,
    LOG_SDMA,
    LOG_INTERRUPT,
    LOG_LIBRARY_PATH,
    LOG_HIPBLASLT,
    LOG_P2P,
    LOG_N_VARS,
};
const char *log_var_name(enum log_var v);

/* The figures of PyTorch's message, in bytes; below 0: not said. */
struct log_oom {
    bool seen, capped; /* capped: the program had limited itself */
    double want, total, free, used, unused;
};

bool log_oom_is_complete(const struct log_oom *o);

struct log_facts {
    struct log_gfx devices; /* that the machine of the log has */
    struct log_gfx used;    /* those of them that the program said it runs on */
    struct log_gfx listed;  /* that a library has files for */
    char failing[LOG_GFX];  /* the one that code was missing for */
    char torch[LOG_TEXT];   /* "2.9.1+rocm6.4" */
    struct log_python python;
    enum torch_build build;
    bool misnamed;        /* rocminfo or clinfo calls a product by another chip's target */
    char board[LOG_TEXT]; /* the last product that clinfo named, until its target follows */
    struct {
        bool set;
        char value[LOG_TEXT];
    } vars[LOG_N_VARS];
    bool override_asked; /* somebody asked the environment for the override */
    bool windows, wsl;
    bool zluda; /* runs PyTorch's build for CUDA on an AMD GPU */
    struct log_trace trace;
    struct log_stack stack;
    bool accelerate;          /* is in a traceback */
    char header[LOG_GFX * 2]; /* that a compiler did not find: "type_traits", "Python.h" */
    struct log_oom oom;
    struct log_progress progress;
    bool loading; /* of LOG_STAGE_BUSY: it is weights that are loaded */
    bool ready;   /* a GPU was found, or what was loaded is there */
    bool prompt_failed;
    struct log_killed killed;
    int asked_for; /* lines in which the answer to "is there a GPU" may come */
    bool asked_by_root, answered_no;
    /* Who may open /dev/kfd, as ls, id, getent and docker's options tell; gids: 0 is not told. */
    bool kfd_of_render, groups_told, in_render, gid_given, render_given;
    uint32_t render_gid, gids[LOG_MOST_GIDS];
    /* rocminfo, as a user and as root. */
    bool by_root, user_failed, root_fine;
    uint32_t small,
        large;   /* bits of the devices that a list calls by the name of an integrated GPU, or of a card */
    int current; /* the device that failed, from 1, as they are listed; 0: not said */
    char last_gfx[LOG_GFX];
};

/* The texts that lead to an extractor, by number; NULL behind the last. */
const char *log_facts_text(size_t i);
/* What text number i leads to may stand in several lines, of which the first was read before. */
bool log_facts_spans_lines(size_t i);
/* Text number i was found at a place of a piece. */
struct log_find log_facts_see(struct log_facts *f, size_t i, const char *s, size_t n, size_t at);
/* To be called before those of a piece while asked_for is above 0. */
struct log_find log_facts_answer(struct log_facts *f, const char *s, size_t n);

#endif
