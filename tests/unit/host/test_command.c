/* SPDX-License-Identifier: Apache-2.0 */
#include "host/command.h"

#include "os/fault.h"
#include "base/str.h"
#include "machine.h"
#include <errno.h>

#define ELF \
    "\x7f"  \
    "ELF"

static void venv(const struct machine *t, const char *dir)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/pyvenv.cfg", dir);
    machine_put(t, path, "home = /usr/bin\nversion = 3.11.2\n");
    snprintf(path, sizeof(path), "%s/bin/python3", dir);
    machine_link(t, path, "/usr/bin/python3");
    snprintf(path, sizeof(path), "%s/bin/python", dir);
    machine_link(t, path, "python3");
    snprintf(path, sizeof(path), "%s/bin/activate", dir);
    machine_put(t, path, "VIRTUAL_ENV=x\n");
}

static void conda(const struct machine *t, const char *dir)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/conda-meta/history", dir);
    machine_put(t, path, "");
    snprintf(path, sizeof(path), "%s/bin/python3.12", dir);
    machine_program(t, path, ELF);
    snprintf(path, sizeof(path), "%s/bin/python", dir);
    machine_link(t, path, "python3.12");
}

/* A script that pip made for a package; the first line of a long path does not fit into one. */
static void console_scripts(const struct machine *t)
{
    machine_program(t, "p/venv/bin/accelerate", "#!/p/venv/bin/python3\nimport sys\n");
    machine_program(t, "p/venv/bin/torchrun",
                    "#!/bin/sh\n'''exec' \"/long path/venv/bin/python3\" \"$0\" \"$@\"\n' '''\nimport sys\n");
    machine_link(t, "long path/venv/bin/python3", "/usr/bin/python3");
    machine_program(
        t, "p/venv/bin/hf-train",
        "#!/bin/sh\n'''exec' \"$(dirname -- \"$(realpath -- \"$0\")\")\"/'python3' \"$0\" \"$@\"\n' '''\n");
    machine_program(t, "p/venv/bin/deepspeed",
                    "#!/bin/sh\n'''exec' /p/venv/bin/python3 \"$0\" \"$@\"\n' '''\n");
    machine_program(t, "p/tool.py", "#!/usr/bin/env python3\n");
    machine_program(t, "p/split.py", "#!/usr/bin/env -S python3 -u\n");
    machine_program(t, "p/uvscript.py", "# /// script\n# dependencies = []\n# ///\n");
}

static void start_scripts(const struct machine *t)
{
    static const struct {
        const char *name, *text;
    } scripts[] = {
        { "plain.sh", "#!/bin/bash\nset -e\nsource venv/bin/activate\npython train.py \"$@\"\n" },
        { "dot.sh", "#!/bin/sh\n. ./venv/bin/activate && exec python3 -u run.py\n" },
        { "here.sh",
          "#!/usr/bin/env bash\nDIR=\"$(cd \"$(dirname \"${BASH_SOURCE[0]}\")\" && pwd)\"\n"
          "source \"$DIR/venv/bin/activate\"\nexport HSA_OVERRIDE_GFX_VERSION=11.0.0\npython run.py\n" },
        { "direct.sh",
          "#!/bin/bash\nHERE=$(dirname \"$0\")\ncd \"$HERE\"\n./venv/bin/python run.py $1 >log 2>&1\n" },
        { "tilde.sh",
          "#!/bin/bash\nsource ~/env/bin/activate\ncd /tmp || exit 1\npython train.py | tee log\n" },
        { "default.sh", "#!/bin/bash\nVENV=${VENV:-$HOME/env}\n\"$VENV/bin/python\" train.py\n" },
        { "conda.sh.sh",
          "#!/bin/bash\neval \"$(conda shell.bash hook)\"\nconda activate wan\npython train.py\n" },
        { "either.sh",
          "#!/bin/bash\nif [ -d .venv ]; then\n  source .venv/bin/activate\nelif [ -d \"venv\" ]; then\n"
          "  source venv/bin/activate\nelse\n  python3 -m venv venv\nfi\npython run.py\n" },
        { "first.sh", "#!/bin/bash\n[ -f .venv/bin/activate ] && source .venv/bin/activate\n"
                      "[[ -d venv ]] && . venv/bin/activate\npython run.py\n" },
        { "makes.sh",
          "#!/bin/bash\n[ -d venv ] || python3 -m venv venv\nvenv/bin/pip install -r requirements.txt\n"
          "venv/bin/python -c 'import torch'\nexec venv/bin/python run.py\n" },
        { "case.sh",
          "#!/bin/bash\nmode=$1; shift\ncase \"$mode\" in\n  ui|web)\n    cd ui && /usr/bin/python3 ui.py\n    ;;\n"
          "  train)\n    source venv/bin/activate\n    python run.py \"$@\"\n    ;;\n  *)\n    exit 1\nesac\n" },
        { "args.sh", "#!/bin/bash\nsource venv/bin/activate\nexec \"$@\"\n" },
        { "only.sh", "#!/bin/bash\nsource venv/bin/activate\n./binary\n" },
        { "env.sh", "export VIRTUAL_ENV=/p/venv\nexport PATH=$VIRTUAL_ENV/bin:$PATH\n" },
        { "sourced.sh", "#!/bin/bash\nsource ./env.sh\npython run.py\n" },
        { "heredoc.sh",
          "#!/bin/bash\ncat > x <<EOF\nsource /other/bin/activate\npython bad.py\nEOF\nvenv/bin/python run.py\n" },
        { "nested.sh", "#!/bin/bash\nbash ./plain.sh --lr 1\n" },
        { "lost.sh", "#!/bin/bash\nPY=$(find / -name python)\n$PY train.py\n" },
        { "function.sh",
          "#!/bin/bash\nactivate() {\n  source venv/bin/activate\n}\nactivate\npython run.py\n" },
        { "functions.sh",
          "#!/bin/bash\nfunction has {\n  # it's there\n  [[ -x \"$(command -v \"$1\")\" ]] && return 0\n  return 1\n}\n"
          "usage() { echo usage; exit 1; }\nstart()\n{\n  local what=\"$1\"; shift\n  \"$@\"\n}\n"
          "[ $# -lt 1 ] && usage\nif has nothing; then /usr/bin/python3 no.py; elif has python3; then\n"
          "  . venv/bin/activate\n  start \"$1\" python run.py \"$2\"\nfi\n" },
        { "groups.sh",
          "#!/bin/bash\ncd /p || { echo no; exit 1; }\n(cd /tmp && ls) || (echo no; exit 1)\nlist=(python bad.py)\n"
          "[[ \"$OSTYPE\" == \"darwin\"* ]] && exit 1\nsource venv/bin/activate\npython run.py\n" },
        { "words.sh", "#!/bin/bash\nARGS=\nnice $ARGS venv/bin/python $ARGS \"\" run.py\n" },
        { "recursion.sh", "#!/bin/bash\nf() {\n f; f\n}\nf\n" },
        { "unknown-if.sh",
          "#!/bin/bash\nif grep -q x /etc/fstab; then\n  source venv/bin/activate\nfi\npython run.py\n" },
        { "none.sh", "#!/bin/bash\necho hello\nsleep 1\n" },
        { "loop.sh", "#!/bin/bash\n./loop.sh\n" },
        { "continued.sh",
          "#!/bin/bash\n# source /no/bin/activate\nvenv/bin/accelerate launch \\\n  --num_processes 1 \\\n"
          "  train.py\n" },
    };
    char path[128];
    for (size_t i = 0; i < ARRAY_LEN(scripts); i++) {
        snprintf(path, sizeof(path), "p/%s", scripts[i].name);
        machine_program(t, path, scripts[i].text);
    }
}

static void world(const struct machine *t)
{
    static const char *const programs[] = { "usr/bin/env",  "usr/bin/nice", "bin/bash",       "bin/sh",
                                            "usr/bin/uv",   "usr/bin/time", "usr/bin/docker", "p/binary",
                                            "usr/bin/cat",  "usr/bin/tee",  "usr/bin/grep",   "usr/bin/find",
                                            "usr/bin/sleep" };
    for (size_t i = 0; i < ARRAY_LEN(programs); i++)
        machine_program(t, programs[i], ELF);
    machine_program(t, "usr/bin/python3.11", ELF);
    machine_link(t, "usr/bin/python3", "python3.11");
    machine_put(t, "tmp/x", "");
    venv(t, "p/venv");
    venv(t, "home/me/env");
    venv(t, "uvp/.venv");
    venv(t, "uvp/other");
    machine_put(t, "uvp/pyproject.toml", "[project]\nname = \"wan\"\n");
    machine_put(t, "uvp/src/deep/x.py", "");
    machine_program(t, "uvp/.venv/bin/accelerate", "#!/uvp/.venv/bin/python\n");
    conda(t, "home/me/miniconda3");
    conda(t, "home/me/miniconda3/envs/wan");
    conda(t, "elsewhere/far");
    machine_put(t, "home/me/.conda/environments.txt", "/gone/far\n/elsewhere/far\n");
    machine_put(t, "pp/pyproject.toml", "[tool.poetry]\nname = \"Wan_Train\"\n");
    venv(t, "home/me/.cache/pypoetry/virtualenvs/wan-train-Ab3xYz9Q-py3.11");
    machine_put(t, "pv/Pipfile", "");
    venv(t, "home/me/.local/share/virtualenvs/pv-Ab3xYz9Q");
    machine_put(t, "pd/pyproject.toml", "");
    machine_put(t, "pd/.pdm-python", "/p/venv/bin/python\n");
    machine_program(t, "home/me/.pyenv/shims/python3", "#!/usr/bin/env bash\n");
    machine_program(t, "home/me/.pyenv/shims/accelerate",
                    "#!/usr/bin/env bash\nexec pyenv exec accelerate\n");
    console_scripts(t);
    start_scripts(t);
}

#define VENV "/p/venv/bin/python"
#define SYSTEM "/usr/bin/python3"
#define POETRY "/home/me/.cache/pypoetry/virtualenvs/wan-train-Ab3xYz9Q-py3.11/bin/python"

static const struct row {
    const char *cwd;
    const char *argv[10];
    const char *exe; /* NULL: unknown */
    bool guess;
    const char *env; /* one more variable */
} rows[] = {
    /* interpreters */
    { "/p", { "venv/bin/python3", "t.py" }, .exe = "/p/venv/bin/python3" },
    { "/", { "p/../p/./venv/bin/python" }, .exe = VENV },
    { "/p", { "python3", "t.py" }, .exe = SYSTEM },
    { "/p", { "python3", "t.py" }, .exe = "/p/venv/bin/python3", .env = "PATH=/p/venv/bin:/usr/bin" },
    { "/p", { "python3" }, .exe = "/p/venv/bin/python3", .env = "PATH=:venv/bin" },
    { "/p", { "python3.11", "-m", "accelerate.commands.launch" }, .exe = "/usr/bin/python3.11" },
    { "/p", { "python3.12" }, .exe = NULL },
    { "/p", { "/nowhere/python" }, .exe = NULL },
    { NULL, { "venv/bin/python3" }, .exe = NULL },
    { NULL, { "/p/venv/bin/python3" }, .exe = "/p/venv/bin/python3" },
    { "/p", { "python3" }, .exe = "/home/me/.pyenv/shims/python3", .env = "PATH=/home/me/.pyenv/shims" },
    { "/p",
      { "accelerate", "launch" },
      .exe = "/home/me/.pyenv/shims/python3",
      .env = "PATH=/home/me/.pyenv/shims" },
    /* wrappers */
    { "/p", { "env", "A=b", "venv/bin/python", "x" }, .exe = VENV },
    { "/p", { "env", "-u", "X", "PATH=/p/venv/bin", "python", "x" }, .exe = VENV },
    { "/", { "env", "-C", "/p", "venv/bin/python" }, .exe = VENV },
    { "/p", { "env", "-i", "python3" }, .exe = SYSTEM, .env = "PATH=/p/venv/bin" },
    { "/p", { "env", "-", "python3" }, .exe = SYSTEM, .env = "PATH=/p/venv/bin" },
    { "/p", { "env", "-S", "venv/bin/python -u", "x" }, .exe = VENV },
    { "/p", { "nice", "-n", "5", "venv/bin/python" }, .exe = VENV },
    { "/p", { "nice", "-n5", "nohup", "setsid", "venv/bin/python" }, .exe = VENV },
    { "/p", { "timeout", "-k", "5", "1h", "venv/bin/python" }, .exe = VENV },
    { "/p", { "time", "-f", "%e", "venv/bin/python" }, .exe = VENV },
    { "/p", { "stdbuf", "-oL", "-e", "L", "venv/bin/python" }, .exe = VENV },
    { "/p", { "taskset", "-c", "0-3", "venv/bin/python" }, .exe = VENV },
    { "/p", { "numactl", "--cpunodebind=0", "-m", "0", "venv/bin/python" }, .exe = VENV },
    { "/p", { "sudo", "-E", "-u", "me", "venv/bin/python" }, .exe = VENV },
    { "/p", { "sudo", "python3" }, .exe = SYSTEM, .env = "PATH=/p/venv/bin" },
    { "/p", { "gdb", "-batch", "--args", "venv/bin/python", "x" }, .exe = VENV },
    { "/p", { "env" }, .exe = NULL },
    { "/p", { "docker", "run", "image", "python" }, .exe = NULL },
    { "/p", { "uvx", "thing" }, .exe = NULL },
    { "/p", { "./binary" }, .exe = NULL },
    /* scripts with a first line */
    { "/p", { "venv/bin/accelerate", "launch", "t.py" }, .exe = "/p/venv/bin/python3" },
    { "/p",
      { "accelerate", "launch" },
      .exe = "/p/venv/bin/python3",
      .env = "PATH=/p/venv/bin:/usr/bin:/bin" },
    { "/p", { "venv/bin/torchrun", "t.py" }, .exe = "/long path/venv/bin/python3" },
    { "/p", { "venv/bin/deepspeed", "t.py" }, .exe = "/p/venv/bin/python3" },
    { "/p", { "venv/bin/hf-train" }, .exe = "/p/venv/bin/python3" },
    { "/p", { "./tool.py" }, .exe = SYSTEM },
    { "/p", { "./tool.py" }, .exe = "/p/venv/bin/python3", .env = "PATH=/p/venv/bin:/usr/bin" },
    { "/p", { "./split.py" }, .exe = SYSTEM },
    /* runners */
    { "/uvp", { "uv", "run", "t.py" }, .exe = "/uvp/.venv/bin/python" },
    { "/uvp/src/deep", { "uv", "run", "python", "t.py" }, .exe = "/uvp/.venv/bin/python" },
    { "/",
      { "uv", "run", "--project", "/uvp", "--extra", "rocm", "accelerate", "launch" },
      .exe = "/uvp/.venv/bin/python" },
    { "/", { "uv", "--directory", "uvp", "run", "-m", "train" }, .exe = "/uvp/.venv/bin/python" },
    { "/uvp", { "uv", "run", "--active", "t.py" }, .exe = VENV, .env = "VIRTUAL_ENV=/p/venv" },
    { "/uvp", { "uv", "run", "t.py" }, .exe = "/uvp/.venv/bin/python", .env = "VIRTUAL_ENV=/p/venv" },
    { "/uvp",
      { "uv", "run", "t.py" },
      .exe = "/uvp/other/bin/python",
      .env = "UV_PROJECT_ENVIRONMENT=other" },
    { "/uvp", { "uv", "run", "--with", "torch", "t.py" }, .exe = "/uvp/.venv/bin/python", .guess = true },
    { "/p", { "uv", "run", "uvscript.py" }, .exe = NULL },
    { "/tmp", { "uv", "run", "t.py" }, .exe = NULL },
    { "/uvp", { "uv", "tool", "run", "t" }, .exe = NULL },
    { "/p",
      { "conda", "run", "-n", "wan", "--no-capture-output", "python", "t.py" },
      .exe = "/home/me/miniconda3/envs/wan/bin/python" },
    { "/p",
      { "mamba", "run", "-p", "/elsewhere/far", "python", "t.py" },
      .exe = "/elsewhere/far/bin/python" },
    { "/p", { "micromamba", "run", "-n", "far", "python", "t.py" }, .exe = "/elsewhere/far/bin/python" },
    { "/p", { "conda", "run", "-n", "base", "python" }, .exe = "/home/me/miniconda3/bin/python" },
    { "/p", { "conda", "run", "-n", "gone", "python" }, .exe = NULL },
    { "/pp", { "poetry", "run", "python", "t.py" }, .exe = POETRY, .guess = true },
    { "/pp", { "poetry", "run", "python", "t.py" }, .exe = VENV, .env = "VIRTUAL_ENV=/p/venv" },
    { "/uvp", { "poetry", "run", "python", "t.py" }, .exe = "/uvp/.venv/bin/python" },
    { "/pv",
      { "pipenv", "run", "python", "t.py" },
      .exe = "/home/me/.local/share/virtualenvs/pv-Ab3xYz9Q/bin/python",
      .guess = true },
    { "/pd", { "pdm", "run", "python", "t.py" }, .exe = VENV },
    { "/uvp", { "hatch", "run", "python", "t.py" }, .exe = "/uvp/.venv/bin/python" },
    /* shells */
    { "/p", { "bash", "-c", "venv/bin/python t.py" }, .exe = VENV },
    { "/", { "bash", "-lc", "cd p && . venv/bin/activate && python t.py" }, .exe = VENV },
    { "/",
      { "sh", "-c", "cd /p; source venv/bin/activate; exec python -u t.py 2>&1 | tee log" },
      .exe = VENV },
    { "/", { "sh", "-c", "cd /nowhere && venv/bin/python t.py" }, .exe = NULL },
    { "/p", { "sh", "-c", "X=1 Y='a b' nice \"venv/bin/python\" $0 t.py" }, .exe = VENV },
    { "/p", { "sh", "-c", "$1/bin/python t.py", "sh", "venv" }, .exe = VENV },
    { "/p", { "sh", "-c", "`pwd`/venv/bin/python t.py" }, .exe = VENV },
    { "/p", { "bash" }, .exe = NULL },
    { "/p", { "./plain.sh", "--lr" }, .exe = VENV },
    { "/p", { "bash", "plain.sh" }, .exe = VENV },
    { "/p", { "bash", "-e", "./dot.sh" }, .exe = "/p/venv/bin/python3" },
    { "/", { "/p/here.sh" }, .exe = VENV },
    { "/", { "p/direct.sh", "x" }, .exe = VENV },
    { "/p", { "./tilde.sh" }, .exe = "/home/me/env/bin/python" },
    { "/p", { "./default.sh" }, .exe = "/home/me/env/bin/python" },
    { "/p", { "./default.sh" }, .exe = VENV, .env = "VENV=/p/venv" },
    { "/p", { "./conda.sh.sh" }, .exe = "/home/me/miniconda3/envs/wan/bin/python" },
    { "/p", { "./either.sh" }, .exe = VENV },
    { "/p", { "./first.sh" }, .exe = VENV },
    { "/p", { "./makes.sh" }, .exe = VENV },
    { "/p", { "./case.sh", "train", "x.yaml" }, .exe = VENV },
    { "/p", { "./case.sh", "ui" }, .exe = NULL },
    { "/p", { "./case.sh", "help" }, .exe = NULL },
    { "/p", { "./args.sh", "python", "t.py" }, .exe = VENV },
    { "/p", { "./only.sh" }, .exe = VENV, .guess = true },
    { "/p", { "./sourced.sh" }, .exe = VENV },
    { "/p", { "./heredoc.sh" }, .exe = VENV },
    { "/p", { "./nested.sh" }, .exe = VENV },
    { "/p", { "./lost.sh" }, .exe = NULL },
    { "/p", { "./function.sh" }, .exe = VENV },
    { "/p", { "./functions.sh", "train", "x.yaml" }, .exe = VENV },
    { "/p", { "./functions.sh" }, .exe = NULL },
    { "/p", { "./groups.sh" }, .exe = VENV },
    { "/p", { "./words.sh" }, .exe = VENV },
    { "/p", { "./recursion.sh" }, .exe = NULL },
    { "/p", { "./unknown-if.sh" }, .exe = VENV, .guess = true },
    { "/p", { "./none.sh" }, .exe = NULL },
    { "/p", { "./loop.sh" }, .exe = NULL },
    { "/p", { "./continued.sh" }, .exe = "/p/venv/bin/python3" },
};

static void every_form_of_a_command(void)
{
    CLEANUP(machine_release) struct machine t = machine_new();
    world(&t);
    machine_open(&t, t.path, NULL);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        const struct row *r = &rows[i];
        const char *const env[] = { r->env ? r->env : "X=", "PATH=/usr/bin:/bin", "HOME=/home/me", NULL };
        struct command_python out;
        command_python(&t.f.root, &t.f.arena, r->argv, env, r->cwd, &out);
        bool right = str_eq(out.exe, r->exe) && out.how &&
                     out.sure == (!r->exe    ? COMMAND_UNKNOWN
                                  : r->guess ? COMMAND_GUESS
                                             : COMMAND_SURE);
        if (!right)
            printf("# row %zu, %s %s: %s (%d), %s\n", i, r->argv[0], r->argv[1] ? r->argv[1] : "",
                   out.exe ? out.exe : "unknown", (int)out.sure, out.how ? out.how : "");
        CHECK(right);
    }
}

/* Each outside call in turn: what is said then has a reason, and a path only with one. */
static void calls_that_fail(void)
{
    CLEANUP(machine_release) struct machine t = machine_new();
    world(&t);
    machine_open(&t, t.path, NULL);
    const char *const env[] = { "PATH=/usr/bin:/bin", "HOME=/home/me", NULL };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        bool reached = true;
        for (int nth = 1; reached; nth++) {
            CLEANUP(arena_release) struct arena a = { 0 };
            struct command_python out;
            fault_arm(nth, EIO);
            command_python(&t.f.root, &a, rows[i].argv, env, rows[i].cwd, &out);
            reached = fault_disarm();
            CHECK(out.how && (out.exe != NULL) == (out.sure != COMMAND_UNKNOWN));
        }
    }
}

/* Whatever a script holds, it is read to an end. */
static void scripts_that_are_none(void)
{
    CLEANUP(machine_release) struct machine t = machine_new();
    static const char *const texts[] = {
        "",
        "$",
        "${",
        "$(",
        "`",
        "\"",
        "'",
        "\\",
        "<<",
        "<<E\n",
        "case",
        "case x in",
        "if",
        "fi fi fi",
        "((((",
        "${A:-${A:-${A:-${A:-${A:-${A:-${A:-${A:-x}}}}}}}}",
        "$(echo $(echo $(echo $(echo $(echo $(echo $(echo x)))))))",
        "{ { { { { { { { { { { { { { { { { { { { { { { { { { { { { { { { { { { {",
        "a=$a$a; a=$a$a; $a x.py",
        "\xff\xfe\x01",
        "X=${#Y} $((1+(2))) ${Y[1]} $\"x\" $'y' &> /dev/null >&2 <(ls) 2>|x",
        "exec",
        "source",
        ". ",
        "cd",
        "conda activate",
    };
    machine_put(&t, "bin/x", "");
    machine_program(&t, "bin/bash", ELF);
    machine_open(&t, t.path, NULL);
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        const char *const argv[] = { "/bin/bash", "-c", texts[i], NULL };
        struct command_python out;
        command_python(&t.f.root, &t.f.arena, argv, NULL, "/", &out);
        CHECK_INT(out.sure, COMMAND_UNKNOWN);
    }
}

/* Each would take more memory or time than any machine has. */
static void scripts_that_explode(void)
{
    static const struct {
        const char *first, *again, *last;
        int n;
    } cases[] = {
        { "a=xxxxxxxxxxxxxxxx;", "a=$a$a;", "$a x.py", 50 },
        { "a=xxxxxxxxxxxxxxxx;", "a=\"${b:-$a}$(echo $a)\";", "", 50 },
        { "f() {\n", "f\n", "}\nf\n", 50 },
        { "", ". /self.sh\n", "", 50 },
        { "export", " a=$a", "", 200000 },
        { "", "a=/usr:$a;", "nothing x.py", 20000 },
    };
    CLEANUP(machine_release) struct machine t = machine_new();
    machine_put(&t, "bin/x", "");
    machine_program(&t, "bin/bash", ELF);
    machine_open(&t, t.path, NULL);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CLEANUP(str_release) struct str text = { 0 };
        str_add(&text, cases[i].first);
        for (int k = 0; k < cases[i].n; k++)
            str_add(&text, cases[i].again);
        str_add(&text, cases[i].last);
        machine_put(&t, "self.sh", text.s);
        const char *const argv[] = { "/bin/bash", "/self.sh", NULL };
        struct command_python out;
        command_python(&t.f.root, &t.f.arena, argv, NULL, "/", &out);
        CHECK_INT(out.sure, COMMAND_UNKNOWN);
    }
}

static void some_programs_lead_away(void)
{
    CHECK(command_is_remote("docker") && command_is_remote("/usr/bin/ssh") && command_is_remote("kubectl"));
    CHECK(!command_is_remote("sshd-notes.py") && !command_is_remote("python3"));
    CHECK(!command_is_remote("apptainer")); /* what it starts is a process below it */
}

int main(void)
{
    RUN(every_form_of_a_command);
    RUN(calls_that_fail);
    RUN(scripts_that_are_none);
    RUN(scripts_that_explode);
    RUN(some_programs_lead_away);
    return check_done();
}
