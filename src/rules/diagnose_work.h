/* SPDX-License-Identifier: Apache-2.0
 * The state while a diagnosis is made; private to diagnose*.c.
 *
 * diagnose.c reads the log and keeps hits; diagnose_machine.c finds the GPU and PyTorch in question;
 * diagnose_judge.c turns the hits into one score per class, lets diagnose_rulings.c adjust the scores, and
 * picks; diagnose_kernel.c handles what the kernel reports about other programs; diagnose_say.c writes cause
 * and fixes.  It uses diagnose_when.c to select fixes, diagnose_keys.c, diagnose_sentences.c and
 * diagnose_commands.c for values of this machine, and diagnose_plan.c for the override. */
#ifndef CAIRN_RULES_DIAGNOSE_WORK_H
#define CAIRN_RULES_DIAGNOSE_WORK_H

#include "base/match.h"
#include "chip/gfx_table.h"
#include "rules/issue_rules.h"
#include "rules/log_facts.h"
#include "rules/log_join.h"
#include "rules/log_lines.h"
#include "rules/override.h"

/* How a rule's hits count; see enum issue_flags. */
enum weight { WEIGHT_HARD, WEIGHT_SOFT, WEIGHT_WARN, WEIGHT_ECHO, N_WEIGHTS };

/* Which vendor's words they are; see RULE_CUDA. */
enum wording { WORDING_ROCM, WORDING_SHARED, N_WORDINGS };

enum { HIT_TEXT = 240, MOST_RULES = 2048, MOST_SIGNS = 256 };

struct hit {
    uint64_t line, order;
    size_t file; /* index into files */
    uint8_t score;
    bool kernel, source;
    char text[HIT_TEXT];
};

/* The hits of one class, weight and wording. */
struct hits {
    bool seen, recovered;   /* recovered: training continued after the last one, in the same file */
    bool outlived;          /* something finished after the last one, in the same file */
    uint16_t any, all;      /* the flags that one of them has, and those that all have */
    struct hit first, best; /* best: the highest score, the first of them */
    size_t last_file;
    uint64_t last_steps, last_ends;
};

struct diagnoser {
    struct match_set *set;
    const struct issue_rule *rules[MOST_RULES];
    size_t n_rules, n_signs; /* the set holds rules, then signs, then the texts of log_facts */
    struct log_lines lines;
    struct log_join join;
    struct log_facts facts;
    struct hits hits[N_ISSUES][N_WEIGHTS][N_WORDINGS];
    struct hit header; /* where facts.header is from */
    bool signs[MOST_SIGNS];
    char **files;
    size_t n_files;
    uint64_t order; /* counts hits */
    bool any_text;
    /* The current chunk. */
    const char *text;
    size_t n;
    uint64_t line;
    bool joined; /* it is several lines that may be one; they were read before */
};

enum vendor { VENDOR_UNKNOWN, VENDOR_AMD, VENDOR_NVIDIA };

struct judgement {
    const struct diagnoser *d;
    const struct diagnose_context *ctx;
    struct arena *a;
    const struct log_facts *log;
    enum vendor vendor;
    bool nvidia_device; /* the log names such a GPU */
    bool vendor_unsure; /* nothing, or little, identifies the GPU's vendor */
    enum issue
        if_amd; /* for a verdict "not ROCm" on such words: the class on an AMD GPU; ISSUE_UNKNOWN: none */
    bool same_machine; /* the log may be from the machine of the facts */
    bool windows;
    /* The GPUs of the log: given by the user, named in the log, or the machine's, in this order. */
    const struct gfx_chip *chips[LOG_MOST_GFX];
    size_t n_chips;
    bool family;                     /* given as "gfx120X" */
    const struct gfx_chip *chip;     /* the one in question; NULL: unknown */
    const struct gfx_chip *igpu;     /* an integrated one beside a card; NULL: none, or it is hidden */
    bool has_card;                   /* this machine has one, hidden or not */
    bool card_hidden;                /* there is a card, but variables leave only the integrated GPU */
    bool igpu_first;                 /* a program that does not select gets the integrated one */
    const struct torch_facts *torch; /* the PyTorch of the run, as found on disk; NULL: unknown */
    struct override_wheel wheel;     /* what it has code for, by its files or by its version in the log */
    enum tri carried;                /* code for the chip */
    struct plan plan;                /* what cairn env would do on its machine, about overrides and GPUs */
    const struct plan_var *override; /* that is active, the worst if there are several; NULL: none */
    int score[N_ISSUES];             /* 0: nothing supports it */
    enum issue verdict;
    enum diagnose_severity severity;
    double confidence;
    const char *reason; /* of "unknown" */
    bool killed;        /* "unknown", except that something killed it while memory was not short */
};

enum { JUDGE_LEAST = 40 }; /* below this score no class is named */

void judge(struct judgement *j);
/* PyTorch is known to be a build that cannot use the AMD GPU of the log. */
bool judge_is_other_build(const struct judgement *j);
/* Which GPUs and which PyTorch it is about. */
void judge_machine(struct judgement *j);
/* The plan for the program of the log: from what is known before the verdict, and, if it is unknown what its
 * PyTorch contains, from what the verdict says about that. */
void judge_plan(struct judgement *j);
void judge_plan_again(struct judgement *j);
/* The plan sets an override, for the chip or for another visible GPU. */
bool judge_needs_override(const struct judgement *j);
/* What the plan sets and removes, with the GPU selection that it is made for. */
void diagnose_add_override(const struct judgement *j, struct diagnose_fix *fix);
/* The chip whose code the plan uses instead of the GPU's own; NULL: none. */
const struct gfx_chip *judge_stand_in(const struct judgement *j);
/* The value of a variable in the process of the log; NULL: not set, as far as is known. */
const char *judge_var(const struct judgement *j, enum log_var v);
bool judge_is_integrated(const struct gfx_chip *c);
bool judge_expandable(const struct judgement *j);
bool judge_is_loading(const struct judgement *j); /* the log ends while the program loads weights */
/* One of the lines of a class contains one of the words, separated by '|'. */
bool judge_says(const struct judgement *j, enum issue i, const char *words);
bool judge_any_error(const struct judgement *j);
bool judge_by_guard(const struct judgement *j); /* cairn itself did what the verdict says */
/* What cairn itself observed contradicts the usual cause of the verdict. */
bool judge_by_watch(const struct judgement *j);
bool judge_may_hang(
    const struct judgement *j); /* the only evidence is that the log ends while something loads */
void judge_raise(struct judgement *j, enum issue i, int score); /* to at least this score */
/* The class with the highest score, except one; ISSUE_UNKNOWN: none has any. */
enum issue judge_top(const struct judgement *j, enum issue but);
bool judge_stopped_by_person(int64_t exit_code);
/* Only the kernel reports it, and the program's end does not match. */
bool kernel_reports_another(const struct judgement *j, enum issue event);
void rulings_apply(struct judgement *j);

struct diagnose_key_row {
    const char *name;
    const char *(*value)(const struct judgement *j); /* NULL: unknown */
};
/* Each ends with a row of NULLs. */
extern const struct diagnose_key_row diagnose_command_keys[], diagnose_plan_keys[], diagnose_sentence_keys[];
/* The value of a {key} of the tables' texts; NULL: unknown. */
const char *diagnose_key(const struct judgement *j, const char *name, size_t n);
/* "1.5 GiB"; NULL below 0. */
const char *diagnose_size(const struct judgement *j, double bytes);
/* This machine's GPU may map as much as the host can spare, or more. */
bool diagnose_limit_suffices(const struct judgement *j);
bool diagnose_knows_ram(const struct judgement *j);
/* Does the fix apply to this case? Its keys are checked separately. */
bool diagnose_applies(const struct judgement *j, const struct issue_fix *f);
/* The attention package that the verdict is about; NULL: PyTorch's own attention, or another verdict. */
const char *diagnose_lacks_attention(const struct judgement *j);
/* Is the package not installed at all? */
bool diagnose_lacks_bitsandbytes(const struct judgement *j);
bool diagnose_lacks_triton(const struct judgement *j);
/* The missing header is a C++ one: those have no dot in their name. */
bool diagnose_lacks_cxx_header(const struct judgement *j);
/* A line supports the verdict itself. */
bool diagnose_has_evidence(const struct judgement *j);
void diagnose_say(const struct judgement *j, struct diagnosis *out);

#endif
