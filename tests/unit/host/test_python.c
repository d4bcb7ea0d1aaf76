/* SPDX-License-Identifier: Apache-2.0 */
#include "host/python.h"

#include "machine.h"

#define ENV(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define SITE "lib/python3.11/site-packages"

static struct pythons find(struct machine *t, const char *const *env)
{
    struct pythons out = { 0 };
    struct facts_options o = { .env = env };
    struct cairn_error err = { 0 };
    machine_open(t, t->path, env);
    CHECK_INT(pythons_find(&t->f, &o, NULL, &out, &err), 0);
    return out;
}

static void venv(const struct machine *t, const char *name, const char *config)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/pyvenv.cfg", name);
    machine_put(t, path, config);
    snprintf(path, sizeof(path), "%s/" SITE "/six.py", name);
    machine_put(t, path, "");
    snprintf(path, sizeof(path), "%s/bin/python3", name);
    machine_link(t, path, "/usr/bin/python3");
}

/* /usr as Debian has it, and a user's own site. */
static void debian(const struct machine *t)
{
    machine_program(t, "usr/bin/python3.11",
                    "\x7f"
                    "ELF");
    machine_link(t, "usr/bin/python3", "python3.11");
    machine_put(t, "usr/lib/python3/dist-packages/six.py", "");
    machine_put(t, "usr/local/lib/python3.11/dist-packages/six.py", "");
    machine_put(t, "home/me/.local/lib/python3.11/site-packages/six.py", "");
    machine_put(t, "home/me/.local/lib/python3.12/site-packages/six.py", "");
}

static void active_environment_comes_first(void)
{
    CLEANUP(machine_release) struct machine t = machine_new();
    debian(&t);
    venv(&t, "home/me/env", "home = /usr/bin\nversion = 3.11.2\n");
    struct pythons p = find(&t, ENV("VIRTUAL_ENV=/home/me/env/", "PATH=/usr/bin", "HOME=/nowhere"));
    REQUIRE(p.n >= 2);
    CHECK_STR(p.item[0].how, "VIRTUAL_ENV");
    CHECK_STR(p.item[0].exe, "/home/me/env/bin/python3");
    CHECK_INT(p.item[0].n_sites, 1);
    CHECK_STR(p.item[0].sites[0], "/home/me/env/" SITE);
    CHECK_STR(p.item[1].how, "PATH");
}

static void sites_of_a_system_python(void)
{
    CLEANUP(machine_release) struct machine t = machine_new();
    debian(&t);
    struct pythons p = find(&t, ENV("PATH=/nowhere:/usr/bin", "HOME=/home/me"));
    REQUIRE(p.n == 1);
    CHECK_STR(p.item[0].exe, "/usr/bin/python3");
    REQUIRE(p.item[0].n_sites == 3);
    CHECK_STR(p.item[0].sites[0], "/home/me/.local/lib/python3.11/site-packages");
    CHECK_STR(p.item[0].sites[1], "/usr/local/lib/python3.11/dist-packages");
    CHECK_STR(p.item[0].sites[2], "/usr/lib/python3/dist-packages");
    p = find(&t, ENV("PATH=/usr/bin", "HOME=/home/me", "PYTHONNOUSERSITE=1", "PYTHONPATH=:/home:relative"));
    REQUIRE(p.n == 1 && p.item[0].n_sites == 3);
    CHECK_STR(p.item[0].sites[0], "/home");
    CHECK_STR(p.item[0].sites[1], "/usr/local/lib/python3.11/dist-packages");
}

static void fedora_has_two_library_directories(void)
{
    CLEANUP(machine_release) struct machine t = machine_new();
    machine_program(&t, "usr/bin/python3.13",
                    "\x7f"
                    "ELF");
    machine_link(&t, "usr/bin/python3", "python3.13");
    machine_link(&t, "bin", "usr/bin");
    machine_put(&t, "usr/lib64/python3.13/site-packages/six.py", "");
    machine_put(&t, "usr/lib/python3.13/site-packages/six.py", "");
    struct pythons p = find(&t, ENV("PATH=/bin"));
    REQUIRE(p.n == 1);
    CHECK_INT(p.item[0].n_sites, 2);
}

static void environment_on_path(void)
{
    CLEANUP(machine_release) struct machine t = machine_new();
    debian(&t);
    venv(&t, "srv/env", "home = /usr/bin\nversion_info = 3.11.2.final.0\n");
    unlink(machine_path(&t, "srv/env/bin/python3"));
    machine_link(&t, "srv/env/bin/python3", "/usr/bin/python3.11");
    struct pythons p = find(&t, ENV("PATH=/srv/env/bin:/usr/bin", "HOME=/home/me"));
    REQUIRE(p.n == 1);
    CHECK_INT(p.item[0].n_sites, 1);
    CHECK_STR(p.item[0].sites[0], "/srv/env/" SITE);
}

static void environment_with_system_packages(void)
{
    CLEANUP(machine_release) struct machine t = machine_new();
    debian(&t);
    venv(&t, "e", "home=/usr/bin\ninclude-system-site-packages =  true \nversion = 3.11.2\n");
    struct pythons p = find(&t, ENV("VIRTUAL_ENV=/e", "PATH=/nowhere", "HOME=/home/me"));
    REQUIRE(p.n == 1 && p.item[0].n_sites == 4);
    CHECK_STR(p.item[0].sites[0], "/e/" SITE);
    CHECK_STR(p.item[0].sites[3], "/usr/lib/python3/dist-packages");
}

static void shims_of_pyenv(void)
{
    CLEANUP(machine_release) struct machine t = machine_new();
    debian(&t);
    machine_program(&t, "home/me/.pyenv/shims/python3", "#!/usr/bin/env bash\nexec pyenv exec\n");
    machine_put(&t, "home/me/.pyenv/version", "3.10\n");
    static const char *const versions[] = { "3.10.4", "3.10.14", "3.12.1" };
    char path[256];
    for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
        snprintf(path, sizeof(path), "home/me/.pyenv/versions/%s/lib/python%.4s/site-packages/six.py",
                 versions[i], versions[i]);
        machine_put(&t, path, "");
        snprintf(path, sizeof(path), "home/me/.pyenv/versions/%s/bin/python3", versions[i]);
        machine_program(&t, path,
                        "\x7f"
                        "ELF");
    }
    const char *shims = "PATH=/home/me/.pyenv/shims:/usr/bin";
    struct pythons p = find(&t, ENV(shims));
    REQUIRE(p.n == 1);
    CHECK_STR(p.item[0].how, "PATH (pyenv)");
    CHECK_STR(p.item[0].sites[0], "/home/me/.pyenv/versions/3.10.14/lib/python3.10/site-packages");
    p = find(&t, ENV(shims, "PYENV_VERSION=3.12.1:3.10.4"));
    REQUIRE(p.n == 1);
    CHECK_STR(p.item[0].exe, "/home/me/.pyenv/versions/3.12.1/bin/python3");
    p = find(&t, ENV(shims, "PYENV_VERSION=system"));
    REQUIRE(p.n == 1);
    CHECK_STR(p.item[0].exe, "/usr/bin/python3");
}

static void conda_prefix(void)
{
    CLEANUP(machine_release) struct machine t = machine_new();
    machine_program(&t, "c/envs/train/bin/python3.12",
                    "\x7f"
                    "ELF");
    machine_link(&t, "c/envs/train/bin/python3", "python3.12");
    machine_put(&t, "c/envs/train/lib/python3.12/site-packages/six.py", "");
    machine_put(&t, "c/envs/train/lib/python3.1/site-packages/six.py", "");
    struct pythons p = find(&t, ENV("CONDA_PREFIX=/c/envs/train", "PATH=/c/envs/train/bin"));
    REQUIRE(p.n == 2);
    CHECK_STR(p.item[0].how, "CONDA_PREFIX");
    CHECK_INT(p.item[0].n_sites, 1);
    CHECK_STR(p.item[0].sites[0], "/c/envs/train/lib/python3.12/site-packages");
    CHECK_STR(p.item[1].sites[0], p.item[0].sites[0]);
}

static void usual_places_in_a_capture(void)
{
    CLEANUP(machine_release) struct machine t = machine_new();
    venv(&t, "opt/venv", "");
    venv(&t, "opt/my-venv", "");
    venv(&t, "workspace/venv", "");
    venv(&t, "home/venv", "");
    struct pythons p = find(&t, ENV("PATH=/usr/bin"));
    REQUIRE(p.n == 3);
    CHECK_STR(p.item[0].sites[0], "/workspace/venv/" SITE);
}

static void environment_in_the_working_directory(void)
{
    CLEANUP(machine_release) struct machine t = machine_new();
    venv(&t, "venv", "version = 3.11\n");
    venv(&t, ".venv", "version = 3.11\n");
    char before[1024];
    REQUIRE(getcwd(before, sizeof(before)) && !chdir(t.path));
    struct pythons p = { 0 };
    struct facts_options o = { 0 };
    struct cairn_error err = { 0 };
    machine_open(&t, NULL, ENV("PATH=/nowhere"));
    CHECK_INT(pythons_find(&t.f, &o, NULL, &p, &err), 0);
    REQUIRE(!chdir(before) && p.n == 2);
    CHECK_STR(p.item[0].how, "./venv");
    CHECK_STR(p.item[1].how, "./.venv");
    CHECK_HAS(p.item[0].sites[0], "/venv/" SITE);
}

static void what_the_user_gave(void)
{
    CLEANUP(machine_release) struct machine t = machine_new();
    venv(&t, "e", "version = 3.11.2\n");
    machine_put(&t, "e/" SITE "/torch/version.py", "");
    machine_put(&t, "file", "");
    CLEANUP(root_close) struct root live = { .fd = -1 };
    struct cairn_error err = { 0 };
    REQUIRE(!root_open(&live, NULL, &err));
    const char *const good[] = { "e", "e/" SITE, "e/" SITE "/torch" };
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        struct pythons p = { 0 };
        struct facts_options o = { .torch_dir = machine_path(&t, good[i]) };
        machine_open(&t, t.path, ENV("PATH=/usr/bin"));
        CHECK_INT(pythons_find(&t.f, &o, &live, &p, &err), 0);
        REQUIRE(p.n == 1 && p.item[0].n_sites == 1);
        CHECK_STR(p.item[0].how, "--torch");
        CHECK_STR(p.item[0].sites[0], machine_path(&t, "e/" SITE));
        CHECK_STR(p.item[0].exe, machine_path(&t, "e/bin/python3"));
    }
    const char *const bad[] = { "not-there", "file" };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct pythons p = { 0 };
        struct facts_options o = { .torch_dir = machine_path(&t, bad[i]) };
        CHECK_INT(pythons_find(&t.f, &o, &live, &p, &err), -1);
        CHECK_INT(err.code, CAIRN_EUSAGE);
        CHECK_HAS(err.msg, bad[i]);
    }
}

static void strange_files_do_no_harm(void)
{
    CLEANUP(machine_release) struct machine t = machine_new();
    machine_put(&t, "e/pyvenv.cfg/file", "");
    machine_link(&t, "e/lib", "lib");
    machine_link(&t, "bin/python3", "python3");
    machine_program(&t, "scripts/python3", "#!/bin/sh\n");
    machine_program(&t, "alone/python3", "");
    struct pythons p =
        find(&t, ENV("VIRTUAL_ENV=/e", "CONDA_PREFIX=", "PATH=:/bin:/scripts:/alone:", "HOME=relative"));
    CHECK_INT(p.n, 0);
}

static struct pythons find_for(struct machine *t, const char *program, const char *const *env)
{
    CLEANUP(root_close) struct root live = { .fd = -1 };
    struct pythons out = { 0 };
    const char *const command[] = { program, "train.py", NULL };
    struct facts_options o = { .env = env, .command = command };
    struct cairn_error err = { 0 };
    machine_open(t, NULL, env);
    if (root_open(&live, NULL, &err))
        abort();
    CHECK_INT(pythons_find(&t->f, &o, &live, &out, &err), 0);
    return out;
}

static void what_the_command_starts_comes_first(void)
{
    CLEANUP(machine_release) struct machine t = machine_new();
    venv(&t, "named", "version = 3.11.2\n");
    venv(&t, "active", "version = 3.11.2\n");
    machine_program(&t, "program",
                    "\x7f"
                    "ELF");
    char active[512];
    snprintf(active, sizeof(active), "VIRTUAL_ENV=%s", machine_path(&t, "active"));
    struct pythons p = find_for(&t, machine_path(&t, "named/bin/python3"), ENV(active, "PATH=/nowhere"));
    REQUIRE(p.n == 2);
    CHECK_STR(p.item[0].exe, machine_path(&t, "named/bin/python3"));
    CHECK(!p.item[0].guess && p.item[1].guess);
    CHECK(t.f.command.given && t.f.command.sure);
    p = find_for(&t, machine_path(&t, "program"), ENV(active, "PATH=/nowhere"));
    REQUIRE(p.n == 1);
    CHECK_STR(p.item[0].how, "VIRTUAL_ENV");
    CHECK(p.item[0].guess && t.f.command.given && !t.f.command.python && t.f.command.how);
}

/* The next on PATH, which nobody has looked for. */
static void a_shim_for_the_system_is_not_known(void)
{
    CLEANUP(machine_release) struct machine t = machine_new();
    machine_program(&t, "pyenv/shims/python3", "#!/usr/bin/env bash\nexec pyenv exec\n");
    struct pythons p =
        find_for(&t, machine_path(&t, "pyenv/shims/python3"), ENV("PYENV_VERSION=system", "PATH=/nowhere"));
    CHECK_INT(p.n, 0);
    CHECK(t.f.command.given && !t.f.command.sure && !t.f.command.python);
}

int main(void)
{
    RUN(active_environment_comes_first);
    RUN(sites_of_a_system_python);
    RUN(fedora_has_two_library_directories);
    RUN(environment_on_path);
    RUN(environment_with_system_packages);
    RUN(shims_of_pyenv);
    RUN(conda_prefix);
    RUN(usual_places_in_a_capture);
    RUN(environment_in_the_working_directory);
    RUN(what_the_user_gave);
    RUN(what_the_command_starts_comes_first);
    RUN(a_shim_for_the_system_is_not_known);
    RUN(strange_files_do_no_harm);
    return check_done();
}
