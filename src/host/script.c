/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"
#include "host/script_test.h"
#include "host/script_words.h"
#include <fnmatch.h>
#include <string.h>

/* What is inside of an if, a case, a loop or a function. */
enum runs { RUNS, RUNS_MAYBE, RUNS_NOT };
struct level {
    enum { LEVEL_IF, LEVEL_CASE, LEVEL_LOOP, LEVEL_GROUP, LEVEL_SUBSHELL } kind;
    enum runs runs;
    bool taken;       /* one of its branches surely runs, and no other does */
    bool may_be;      /* one of them may */
    struct word word; /* of a case */
    const char *cwd;  /* of the shell that started a subshell */
};
enum { MOST_LEVELS = 32 };

/* What a script starts, its functions included. */
struct result {
    struct command_python found;
    bool trains;                 /* it is given a script or a module */
    struct command_python asked; /* one that is given a text, which may be a check or all there is */
    const char *lost;            /* a command after `found` that could not be followed */
};

struct reading {
    struct script s;
    struct level level[MOST_LEVELS];
    size_t n_levels;
    enum runs outside; /* does the whole of it run? */
    int calls;         /* of functions, one inside of the other */
    bool ended;        /* by exit, or for a function by return */
    bool exits;        /* by exit */
    enum tri last;     /* did the last statement succeed? */
    bool assumed;      /* unknown, but most commands do */
    enum ends before;  /* what precedes this statement */
    struct result *result;
};
enum { MOST_CALLS = 16 };

/* Programs of Python's that train nothing. */
static const char tools[] =
    "pip pip3 pip3.9 pip3.10 pip3.11 pip3.12 pip3.13 virtualenv huggingface-cli hf wandb "
    "tensorboard pre-commit git gdown kaggle";
static const char modules[] = "venv pip virtualenv ensurepip json.tool http.server site";

static enum tri not_tri(enum tri t)
{
    return t == TRI_UNKNOWN ? t : t == TRI_YES ? TRI_NO : TRI_YES;
}

static enum tri as_tri(bool b)
{
    return b ? TRI_YES : TRI_NO;
}

static enum runs runs_now(const struct reading *r)
{
    enum runs most = r->outside;
    for (size_t i = 0; i < r->n_levels; i++)
        most = r->level[i].runs > most ? r->level[i].runs : most;
    return most;
}

static struct level *push(struct reading *r, int kind, enum runs runs)
{
    if (r->n_levels == MOST_LEVELS) {
        r->ended = true;
        return &r->level[0];
    }
    struct level *l = &r->level[r->n_levels++];
    *l = (struct level){ .runs = runs };
    l->kind = kind;
    return l;
}

static struct level *top(struct reading *r, int kind)
{
    struct level *l = r->n_levels ? &r->level[r->n_levels - 1] : NULL;
    return l && (int)l->kind == kind ? l : NULL;
}

static void pop(struct reading *r, int kind)
{
    if (top(r, kind))
        r->n_levels--;
}

/* --- what a statement does
 * ------------------------------------------------------------------------------------ */

static void assign(struct reading *r, const struct word *word)
{
    struct walk *w = r->s.w;
    size_t n = script_assigned(word->text);
    walk_set(w, arena_strndup(w->a, word->text, n), word->unknown ? NULL : word->text + n + 1, word->unknown);
}

static const char *script_label(const struct reading *r)
{
    return r->s.name ? r->s.name : "the command";
}

static enum tri activate(struct reading *r, const char *prefix)
{
    struct walk *w = r->s.w;
    const char *path = prefix ? walk_path(w, prefix) : NULL;
    bool done = path && walk_activate(w, path, arena_printf(w->a, "%s activates %s", script_label(r), path));
    w->maybe |= done && runs_now(r) == RUNS_MAYBE;
    return as_tri(done);
}

/* "source X/bin/activate" is an environment; another file is read as part of this one. */
static enum tri source(struct reading *r, const struct statement *st)
{
    struct walk *w = r->s.w;
    const char *file = st->words[1].text;
    static const char mark[] = "/bin/activate";
    if (st->words[1].unknown)
        return TRI_UNKNOWN;
    if (!strcmp(str_file_name(file), "activate") && st->n == 3) /* conda's old way */
        return activate(r, environments_conda(w, st->words[2].text));
    if (!strcmp(file, "bin/activate"))
        return activate(r, ".");
    if (str_ends(file, mark))
        return activate(r, arena_strndup(w->a, file, strlen(file) - strlen(mark)));
    const char *path = walk_path(w, file);
    const char *text = path && !str_ends(file, "conda.sh") ? walk_read(w, path) : NULL;
    if (!text || w->depth >= WALK_DEPTH)
        return TRI_YES;
    /* Its functions and conditions are read, too, but it is not the place where a trainer is started. */
    struct walk inner = *w;
    struct command_python unused;
    inner.out = &unused;
    inner.depth++;
    script_follow(&inner, text, path, NULL);
    w->vars = inner.vars;
    w->cwd = inner.cwd;
    w->prefix = inner.prefix;
    w->prefix_how = inner.prefix_how;
    w->functions = inner.functions;
    w->maybe |= inner.maybe;
    return TRI_YES;
}

/* `python -c`, or with a text on its input. */
static bool is_asked(const char *name, const struct statement *st)
{
    return walk_is_python_name(name) && st->n > 1 && str_list_has("-c -", ' ', st->words[1].text);
}

/* A Python that installs something, or prints its version. */
static bool is_aside(const char *name, const struct statement *st)
{
    const char *first = st->n > 1 ? st->words[1].text : "";
    if (str_list_has(tools, ' ', name))
        return true;
    if (!walk_is_python_name(name))
        return false;
    if (str_list_has("-V --version", ' ', first) || st->n == 1)
        return true;
    return !strcmp(first, "-m") && st->n > 2 && str_list_has(modules, ' ', st->words[2].text);
}

static bool trains(const struct statement *st)
{
    for (size_t i = 1; i < st->n; i++)
        if (str_ends(st->words[i].text, ".py") || !strcmp(st->words[i].text, "-m"))
            return true;
    return false;
}

/* The last one counts, and one that trains more than another.  The same Python, once sure, stays so. */
static void take_found(struct result *to, const struct command_python *found, bool is_training)
{
    if (to->trains && !is_training)
        return;
    bool sure = to->found.sure == COMMAND_SURE && str_eq(to->found.exe, found->exe);
    if (!sure)
        to->found = *found;
    to->trains = is_training;
    to->lost = NULL;
}

static enum tri run(struct reading *r, const struct statement *st)
{
    struct walk inner = *r->s.w;
    const char **argv = ARENA_NEW(inner.a, const char *, st->n + 1);
    for (size_t i = 0; i < st->n; i++)
        argv[i] = st->words[i].text;
    const char *name = str_file_name(argv[0]);
    if (is_aside(name, st))
        return TRI_UNKNOWN; /* asked whether it has something */
    struct command_python out = { 0 };
    inner.out = &out;
    inner.script = script_label(r);
    inner.maybe |= runs_now(r) == RUNS_MAYBE;
    struct result *to = r->result;
    if (st->words[0].unknown) {
        if (trains(st))
            to->lost = arena_printf(inner.a, "%s: cairn cannot tell what it starts without running it",
                                    script_label(r));
        return TRI_YES;
    }
    bool found = walk_command(&inner, argv);
    if (found && is_asked(name, st)) {
        to->asked = out;
        return TRI_UNKNOWN;
    }
    if (found)
        take_found(to, &out, trains(st));
    else if (trains(st))
        to->lost = out.how;
    return TRI_YES;
}

static enum tri declare(struct reading *r, const struct statement *st)
{
    for (size_t i = 1; i < st->n; i++)
        if (script_assigned(st->words[i].text))
            assign(r, &st->words[i]);
    return TRI_YES;
}

static enum tri change_folder(struct reading *r, const struct statement *st)
{
    struct walk *w = r->s.w;
    const char *to = st->n > 1 ? st->words[st->n - 1].text : walk_get(w, "HOME");
    bool known = to && *to && !(st->n > 1 && st->words[st->n - 1].unknown);
    const char *path = known ? walk_path(w, to) : NULL;
    if (known && path && !root_is_dir(w->root, path))
        return TRI_NO;
    w->cwd = path;
    return known && path ? TRI_YES : TRI_UNKNOWN;
}

static void shift(struct reading *r)
{
    if (r->s.args && r->s.args[0])
        r->s.args++;
}

/* The words after assignments and irrelevant prefixes of a command. */
static struct statement without_lead(struct reading *r, struct statement st)
{
    while (st.n && script_assigned(st.words[0].text)) {
        assign(r, &st.words[0]);
        st.words++;
        st.n--;
    }
    return st;
}

static void read_all(struct reading *r);

/* A function's body is read where it is called, with what it is given. */
static enum tri call(struct reading *r, const char *body, const struct statement *st)
{
    struct walk *w = r->s.w;
    const char **args = ARENA_NEW(w->a, const char *, st->n + 1);
    for (size_t i = 1; i < st->n; i++)
        args[i - 1] = st->words[i].unknown ? "" : st->words[i].text;
    struct reading inner = { .s = { .w = w, .at = body, .name = r->s.name, .args = args },
                             .outside = runs_now(r),
                             .calls = r->calls + 1,
                             .last = TRI_YES,
                             .before = ENDS_LINE,
                             .result = r->result };
    if (inner.calls > MOST_CALLS)
        return TRI_UNKNOWN;
    read_all(&inner);
    r->ended |= inner.exits;
    r->exits |= inner.exits;
    return inner.assumed ? TRI_UNKNOWN : inner.last;
}

static enum tri perform(struct reading *r, struct statement st)
{
    struct walk *w = r->s.w;
    st = without_lead(r, st);
    const char *name = st.n ? st.words[0].text : "true";
    if (str_list_has("export declare typeset local readonly", ' ', name))
        return declare(r, &st);
    if (str_list_has("[ [[ test", ' ', name))
        return script_test(w, st.words + 1, st.n - 1);
    if (!strcmp(name, "cd") || !strcmp(name, "pushd"))
        return change_folder(r, &st);
    if ((!strcmp(name, "source") || !strcmp(name, ".")) && st.n > 1)
        return source(r, &st);
    if (str_list_has("conda mamba micromamba", ' ', name) && st.n > 1 &&
        !strcmp(st.words[1].text, "activate"))
        return activate(r, environments_conda(w, st.n > 2 ? st.words[st.n - 1].text : "base"));
    if (!strcmp(name, "unset") && st.n > 1)
        walk_set(w, st.words[st.n - 1].text, NULL, false);
    if (!strcmp(name, "shift"))
        shift(r);
    if (str_list_has("exit return", ' ', name)) {
        struct level *shell = top(r, LEVEL_SUBSHELL);
        bool surely = runs_now(r) == RUNS && !shell;
        if (shell) /* ends that one alone */
            shell->runs = RUNS_NOT;
        r->ended |= surely;
        r->exits |= surely && !strcmp(name, "exit");
        return st.n > 1 ? as_tri(!strcmp(st.words[1].text, "0")) : r->last;
    }
    for (const struct walk_function *f = w->functions; f; f = f->next)
        if (!strcmp(f->name, name))
            return call(r, f->body, &st);
    if (str_list_has("which command type hash", ' ', name) && st.n > 1) {
        const struct word *asked = &st.words[st.n - 1];
        if (strcmp(name, "command") || !strcmp(st.words[1].text, "-v"))
            return asked->unknown ? TRI_UNKNOWN : as_tri(walk_program(w, asked->text) != NULL);
    }
    if (str_list_has("true : echo printf set unset shift exit return eval trap ulimit umask mkdir false", ' ',
                     name))
        return as_tri(strcmp(name, "false") != 0);
    r->assumed = true;
    return run(r, &st);
}

/* --- the shell's own words
 * ------------------------------------------------------------------------------------ */

/* A branch whose condition is true, false, or unknown. */
static void branch(struct level *l, enum tri holds)
{
    l->runs = l->taken || holds == TRI_NO ? RUNS_NOT : holds == TRI_YES && !l->may_be ? RUNS : RUNS_MAYBE;
    l->taken |= holds == TRI_YES;
    l->may_be |= holds == TRI_UNKNOWN;
}

/* "test && command", "command || exit": by how the one before ended. */
static bool is_left_out(const struct reading *r)
{
    return (r->before == ENDS_AND && r->last == TRI_NO) || (r->before == ENDS_OR && r->last == TRI_YES);
}

/* True: the word was the shell's own, and what follows it is a statement. */
static bool take_keyword(struct reading *r, const struct statement *st)
{
    const char *word = st->words[0].text;
    struct level *l = top(r, LEVEL_IF);
    if (!strcmp(word, "if"))
        push(r, LEVEL_IF, RUNS);
    else if (!strcmp(word, "then") && l)
        branch(l, r->assumed ? TRI_UNKNOWN : r->last);
    else if (!strcmp(word, "elif") && l)
        l->runs = l->taken ? RUNS_NOT : RUNS;
    else if (!strcmp(word, "else") && l)
        branch(l, TRI_YES);
    else if (!strcmp(word, "fi"))
        pop(r, LEVEL_IF);
    else if (str_list_has("while until for select", ' ', word))
        push(r, LEVEL_LOOP, RUNS_MAYBE);
    else if (!strcmp(word, "done"))
        pop(r, LEVEL_LOOP);
    else if (!strcmp(word, "{"))
        push(r, LEVEL_GROUP, is_left_out(r) ? RUNS_NOT : RUNS);
    else if (!strcmp(word, "}"))
        pop(r, LEVEL_GROUP);
    else if (!strcmp(word, "esac"))
        pop(r, LEVEL_CASE);
    else
        return str_list_has("do time !", ' ', word);
    return true;
}

static enum tri matches(const struct level *l, const char *pattern)
{
    if (l->word.unknown)
        return TRI_UNKNOWN;
    return as_tri(!fnmatch(pattern, l->word.text, 0));
}

/* `case WORD in`, and the patterns of its branches.  True: that was it. */
static bool take_case(struct reading *r, struct statement *st)
{
    struct level *l = top(r, LEVEL_CASE);
    if (st->n >= 3 && !strcmp(st->words[0].text, "case") && !strcmp(st->words[2].text, "in")) {
        push(r, LEVEL_CASE, RUNS_NOT)->word = st->words[1];
        st->words += 3;
        st->n -= 3;
        l = top(r, LEVEL_CASE);
    }
    bool is_pattern =
        l && st->n == 1 && (st->ends == ENDS_CLOSE || (st->ends == ENDS_PIPE && l->runs == RUNS_NOT));
    if (!is_pattern)
        return false;
    enum tri fits = matches(l, st->words[0].text);
    if (st->ends == ENDS_CLOSE || fits != TRI_NO)
        branch(l, fits);
    return true;
}

/* `name() { … }` and `function name { … }`: kept until it is called.  True: that was it. */
static bool take_function(struct reading *r, const struct statement *st)
{
    struct walk *w = r->s.w;
    bool is_word = st->n >= 2 && !strcmp(st->words[0].text, "function");
    if (!is_word && !(st->n == 1 && st->ends == ENDS_OPEN && !st->words[0].unknown))
        return false;
    const char *name = st->words[is_word ? 1 : 0].text;
    bool begun = is_word && st->n >= 3 && !strcmp(st->words[2].text, "{");
    if (begun && st->ends != ENDS_LINE)
        return false; /* all of it on this line: too short to start anything */
    const char *body = script_body(&r->s, begun);
    if (!body || !walk_spend(w, strlen(body)))
        return true;
    struct walk_function *f = ARENA_NEW(w->a, struct walk_function, 1);
    *f = (struct walk_function){ name, body, w->functions };
    w->functions = f;
    return true;
}

static void take(struct reading *r, struct statement st)
{
    bool negated = false;
    if (take_case(r, &st) || take_function(r, &st))
        return;
    if (st.ends == ENDS_OPEN && !st.n)
        push(r, LEVEL_SUBSHELL, is_left_out(r) ? RUNS_NOT : RUNS)->cwd = r->s.w->cwd;
    while (st.n && !st.words[0].unknown && take_keyword(r, &st)) {
        bool is_loop = str_list_has("for select", ' ', st.words[0].text);
        negated ^= !strcmp(st.words[0].text, "!");
        st.words++;
        st.n--;
        if (is_loop)
            return; /* its variable and list */
    }
    struct level *l = top(r, LEVEL_CASE);
    if (st.n && runs_now(r) != RUNS_NOT && !is_left_out(r)) {
        bool maybe = r->s.w->maybe;
        r->s.w->maybe |= r->before != ENDS_LINE && r->last == TRI_UNKNOWN && r->before != ENDS_PIPE;
        r->assumed = false;
        r->last = perform(r, st);
        r->last = negated ? not_tri(r->last) : r->last;
        r->s.w->maybe = maybe || (r->s.w->maybe && r->s.w->prefix != NULL);
    }
    if (st.ends == ENDS_CASE && l)
        l->runs = RUNS_NOT;
    l = top(r, LEVEL_SUBSHELL);
    if (st.ends == ENDS_CLOSE && l) {
        r->s.w->cwd = l->cwd;
        r->n_levels--;
    }
}

static void read_all(struct reading *r)
{
    struct statement st;
    while (!r->ended && script_next(&r->s, &st)) {
        take(r, st);
        r->before = st.n || st.ends != ENDS_LINE ? st.ends : r->before;
        if (st.ends == ENDS_LINE || st.ends == ENDS_CASE || st.ends == ENDS_CLOSE || st.ends == ENDS_OPEN)
            r->before = ENDS_LINE;
    }
}

bool script_follow(struct walk *w, const char *text, const char *name, const char *const *args)
{
    struct result result = { .lost = NULL };
    struct reading r = { .s = { .w = w, .at = text, .name = name, .args = args },
                         .before = ENDS_LINE,
                         .result = &result };
    const char *prefix = w->prefix;
    read_all(&r);
    if (!result.found.exe)
        result.found = result.asked;
    if (result.lost)
        return walk_lost(w, "%s", result.lost);
    if (result.found.exe) {
        *w->out = result.found;
        return true;
    }
    if (w->prefix && w->prefix != prefix) {
        w->maybe = true; /* activated, and what then starts is not seen */
        return walk_found(w, walk_prefix_exe(w, w->prefix));
    }
    return walk_lost(w, "%s starts no Python that cairn can see", name ? name : "the command");
}
