/* SPDX-License-Identifier: Apache-2.0 */
#include "run/resume.h"

#include "base/str.h"
#include "host/root.h"
#include "rules/trainers.h"
#include "os/list.h"
#include "os/path.h"
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* A trainer is recognized by its folder or by the name of its script; the first matching row counts. */
struct known {
    const char *trainer;
    const char *folder;  /* a part of a path; NULL: any */
    const char *scripts; /* patterns of names, with spaces between; NULL: any */
};
static const struct known known[] = {
    { "ai-toolkit", "ai-toolkit/", "run.py" },
    { "musubi-tuner", "musubi", NULL },
    { "musubi-tuner", NULL,
      "wan_train_network.py hv_train_network.py fpack_train_network.py flux_kontext_train_network.py "
      "qwen_image_train_network.py zimage_train_network.py" },
    { "sd-scripts", "sd-scripts", NULL },
    { "sd-scripts", NULL,
      "train_network.py sdxl_train_network.py flux_train_network.py sd3_train_network.py sdxl_train.py train_db.py "
      "fine_tune.py flux_train.py sd3_train.py" },
    { "onetrainer", "OneTrainer", NULL },
    { "simpletuner", "SimpleTuner", NULL },
    { "diffusion-pipe", "diffusion-pipe", NULL },
    { "comfyui", "ComfyUI", NULL },
    { "unsloth", "unsloth", NULL },
    { "accelerate", NULL,
      "train_dreambooth*.py train_text_to_image*.py train_controlnet*.py run_clm.py run_mlm.py run_sft.py sft.py" },
};

/* How each trainer resumes.  Without an option it finds its state itself. */
struct habit {
    const char *trainer;
    const char *option;    /* takes the folder of the state */
    const char *folder_is; /* the option that names the folder of the states */
    const char *state;     /* pattern of a state's folder */
    const char
        *whole; /* files of a whole state, the last one written included; with '|', either of two sets */
    const char *needs; /* what to say when there is none */
};
static const struct habit habits[] = {
    { "ai-toolkit", NULL, NULL, NULL, NULL, NULL },
    /* Accelerate's save_state writes the random states last. */
    { "musubi-tuner", "--resume", "--output_dir", "*-state", "optimizer.bin random_states_0.pkl",
      "start it with --save_state" },
    { "sd-scripts", "--resume", "--output_dir", "*-state", "optimizer.bin random_states_0.pkl",
      "start it with --save_state" },
    { "accelerate", "--resume_from_checkpoint", "--output_dir", "checkpoint-*",
      "optimizer.pt trainer_state.json|optimizer.bin random_states_0.pkl",
      "start it with a checkpoint interval" },
};

static bool matches_word(const char *patterns, const char *name)
{
    char word[128];
    for (const char *at = patterns; *at; at += strspn(at, " ")) {
        size_t n = strcspn(at, " ");
        snprintf(word, sizeof(word), "%.*s", (int)n, at);
        if (!fnmatch(word, name, 0))
            return true;
        at += n;
    }
    return false;
}

/* The script or module that a command line starts, after launchers and their options; else its program. */
static const char *script_of(char *const *argv)
{
    for (char *const *arg = argv; *arg; arg++) {
        if (str_ends(*arg, ".py"))
            return *arg;
        if (!strcmp(*arg, "-m") && arg[1] && !strstr(arg[1], "launch"))
            return arg[1];
    }
    return argv[0];
}

static bool row_fits(const struct known *k, const char *script)
{
    if (k->folder && !strstr(script, k->folder))
        return false;
    return !k->scripts || matches_word(k->scripts, path_name(script));
}

const char *resume_trainer(char *const *argv)
{
    char whole[PATH_MAX];
    const char *script = script_of(argv);
    if (str_ends(script, ".py") && realpath(script, whole))
        script = whole; /* "python run.py": the working folder names the trainer */
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (row_fits(&known[i], script))
            return known[i].trainer;
    return NULL;
}

const char *resume_name(char *const *argv)
{
    const char *trainer = resume_trainer(argv), *script = script_of(argv);
    return trainer || script == argv[0] ? trainer : path_name(script);
}

const char *resume_option(char *const *argv, const char *name)
{
    size_t n = strlen(name);
    for (; *argv; argv++) {
        if (!strcmp(*argv, name) && argv[1])
            return argv[1];
        if (!strncmp(*argv, name, n) && (*argv)[n] == '=')
            return *argv + n + 1;
    }
    return NULL;
}

char **resume_with_option(char *const *argv, const char *name, const char *value, struct arena *a)
{
    char **out = NULL;
    size_t n = 0, len = strlen(name);
    bool done = false;
    for (char *const *arg = argv; *arg; arg++) {
        bool joined = !strncmp(*arg, name, len) && (*arg)[len] == '=';
        bool apart = !strcmp(*arg, name);
        *ARENA_PUSH(a, out, n) = joined ? arena_printf(a, "%s=%s", name, value) : *arg;
        done |= joined || apart;
        if (apart && arg[1]) {
            *ARENA_PUSH(a, out, n) = arena_strdup(a, value);
            arg++;
        }
    }
    if (!done) {
        *ARENA_PUSH(a, out, n) = arena_strdup(a, name);
        *ARENA_PUSH(a, out, n) = arena_strdup(a, value);
    }
    *ARENA_PUSH(a, out, n) = NULL;
    return out;
}

static bool has_files(const char *dir, const char *names, size_t len, struct arena *a, struct stat *last)
{
    for (size_t at = 0; at < len;) {
        size_t n = strcspn(names + at, " |");
        const char *path = path_join(a, dir, arena_strndup(a, names + at, n));
        if (stat(path, last) || !S_ISREG(last->st_mode) || !last->st_size)
            return false;
        at += n + 1;
    }
    return true;
}

static bool is_whole(const char *dir, const char *sets, struct arena *a, struct stat *last)
{
    for (const char *at = sets;; at++) {
        size_t n = strcspn(at, "|");
        if (has_files(dir, at, n, a, last))
            return true;
        at += n;
        if (!*at)
            return false;
    }
}

/* The state whose last file is the newest; NULL if none is complete. */
static const char *newest_state(const struct habit *h, const char *dir, struct arena *a)
{
    const char *best = NULL;
    struct timespec best_time = { 0 };
    CLEANUP(os_list_close) struct os_list *l = os_list_open(dir, 0);
    for (const char *name; l && (name = os_list_next(l));) {
        struct stat last;
        const char *path = path_join(a, dir, name);
        if (fnmatch(h->state, name, FNM_PERIOD) || !is_whole(path, h->whole, a, &last))
            continue;
        bool younger = last.st_mtim.tv_sec > best_time.tv_sec ||
                       (last.st_mtim.tv_sec == best_time.tv_sec && last.st_mtim.tv_nsec > best_time.tv_nsec);
        if (best && !younger)
            continue;
        best = path;
        best_time = last.st_mtim;
    }
    return best;
}

static const struct habit *habit_of(const char *trainer)
{
    for (size_t i = 0; i < ARRAY_LEN(habits); i++)
        if (str_eq(habits[i].trainer, trainer))
            return &habits[i];
    return NULL;
}

static void find_state(char *const *argv, const struct habit *h, struct arena *a, struct resume *out)
{
    const char *dir = resume_option(argv, h->folder_is);
    const char *state = dir ? newest_state(h, dir, a) : NULL;
    if (!dir) {
        out->why =
            arena_printf(a, "the command has no %s, so cairn cannot find its saved state", h->folder_is);
    } else if (!state) {
        out->why = arena_printf(a, "no complete saved state in %s: %s", dir, h->needs);
    } else {
        out->way = RESUME_STATE;
        out->from = state;
        out->argv = resume_with_option(argv, h->option, state, a);
        out->why = arena_printf(a, "%s resumes from %s", h->trainer, state);
    }
}

void resume_find(char *const *argv, const char *trainer, const char *command, struct arena *a,
                 struct resume *out)
{
    const struct trainer *told = trainer ? trainer_find(trainer) : NULL;
    *out = (struct resume){ .trainer = told ? told->name : resume_trainer(argv) };
    const struct habit *h = habit_of(out->trainer);
    if (command) {
        char **shell = ARENA_NEW(a, char *, 4);
        shell[0] = arena_strdup(a, "/bin/sh");
        shell[1] = arena_strdup(a, "-c");
        shell[2] = arena_strdup(a, command);
        out->way = RESUME_COMMAND;
        out->argv = shell;
        out->why = "resuming with --resume-cmd";
    } else if (!h) {
        out->why = out->trainer
                       ? arena_printf(a, "cairn does not know how %s resumes: use --resume-cmd", out->trainer)
                       : "cairn does not know how this command resumes: use --resume-cmd";
    } else if (h->option) {
        find_state(argv, h, a, out);
    } else {
        out->way = RESUME_ITSELF;
        out->argv = argv;
        out->why = arena_printf(a, "%s continues from its last save by itself", h->trainer);
    }
}
