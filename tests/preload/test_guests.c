/* SPDX-License-Identifier: Apache-2.0
 * The library in programs of all kinds that a trainer may start, most of which have nothing to do with GPUs. */
#include "trial.h"
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>

static char *alone; /* the program */

static char *copy_of(const char *path, const char *name)
{
    char *copy = text("%s/%s", place, name), *command = text("cp %s %s && chmod 755 %s", path, copy, copy);
    CHECK(!system(command));
    free(command);
    return copy;
}

/* A program of 32 bits, or one that does not find the library: the loader says so, and goes on. */
static void drop_loader_line(char *said)
{
    char *end = strncmp(said, "ERROR: ld.so: object '", 22) ? NULL : strstr(said, "ignored.\n");
    if (end)
        memmove(said, end + 9, strlen(end + 9) + 1);
}

static void is_quiet_without_a_runtime(void)
{
    size_t before = n_files();
    struct outcome o = TRY("ask", "all", .program = alone);
    CHECK_STR(o.out, "3\n");
    o = TRY("live", "all", .program = alone);
    CHECK_STR(o.out, "42 7\n");
    CHECK_INT(WEXITSTATUS(o.status), 5);
    o = TRY("words", "all", .program = "/bin/echo");
    CHECK_HAS(o.out, "words");
    CHECK_INT(o.status, 0);
    CHECK_INT(n_files(), before);
}

static void children_are_started_in_many_ways(void)
{
    struct outcome bare = TRY("spawn", NULL);
    size_t before = n_files();
    struct outcome o = TRY("spawn", "all");
    CHECK_STR(o.out, bare.out);
    CHECK_HAS(o.out, "free 0\nstatus 0\ncopy 0\n");
    CHECK_INT(n_files(), before + 3); /* the one without an environment has none */
    struct record *r = record_of(o.pid);
    REQUIRE(r);
    CHECK_INT(record_n_calls(r), 12);
}

static void does_without_its_environment(void)
{
    struct outcome bare = TRY("calls", NULL);
    size_t before = n_files();
    struct outcome o = TRY("cleared", "all");
    CHECK_STR(o.out, bare.out);
    CHECK_INT(n_files(), before);
}

static void does_without_the_file_system(void)
{
    struct outcome bare = TRY("chroot", NULL);
    if (!strcmp(bare.out, "no chroot\n"))
        SKIP("only root may change it");
    size_t before = n_files();
    struct outcome o = TRY("chroot", "all", .budget = true);
    CHECK_STR(o.out, bare.out);
    CHECK_HAS(o.out, "asked 0\n");
    CHECK_INT(n_files(), before);
}

static void does_without_the_library(void)
{
    struct outcome o = TRY("live", "all", .program = alone, .libraries = "/nonexistent/libcairn-preload.so");
    drop_loader_line(o.out);
    CHECK_STR(o.out, "42 7\n");
    CHECK_INT(WEXITSTATUS(o.status), 5);
}

static void other_libraries_may_be_there(void)
{
    char *copy = copy_of(library, "copy.so"), *all = text("libm.so.6:%s:%s:%s", copy, library, library);
    char *other = text("%s/libtorch-other.so", folder);
    struct outcome o = TRY("ask", "all", .program = alone, .libraries = all);
    CHECK_STR(o.out, "3\n");
    const char *const torches[] = { NULL, other };
    for (size_t i = 0; i < 2; i++) {
        o = TRY("load", "stage", .libraries = all, .torch = torches[i]);
        CHECK_STR(o.out, "0 1 0 1 0 1 0 1 last 0 pinned 0\n");
        size_t before = n_files();
        struct outcome bare = TRY("calls", NULL, .torch = torches[i]);
        o = TRY("calls", "record", .libraries = all, .torch = torches[i]);
        CHECK_STR(o.out, bare.out);
        CHECK_INT(n_files(), before + 1);
    }
    free(copy);
    free(all);
    free(other);
}

/* It calls us, and must not be called for it. */
static void another_tool_may_stand_before_us(void)
{
    char *all = text("%s/libtool.so:%s", folder, library);
    struct outcome o = TRY("load", "stage", .libraries = all);
    CHECK_STR(o.out, "0 1 0 1 0 1 0 1 last 0 pinned 0\n");
    free(all);
}

/* Its libc is another one, which takes the library all the same. */
static void a_musl_program_lives_with_it(void)
{
    char *program = text("%s/musl", folder), *twice = text("%s:libm.so.6:%s", library, library);
    if (access(program, X_OK))
        SKIP("no musl-gcc");
    for (int i = 0; i < 3; i++) {
        const char *libraries = i == 2 ? twice : NULL, *now = i == 1 ? "LD_BIND_NOW=1" : NULL;
        struct outcome o = TRY("live", "all", .program = program, .libraries = libraries, .more = now);
        CHECK_STR(o.out, "42 7\n");
        CHECK_INT(WEXITSTATUS(o.status), 5);
        o = TRY("ask", "all", .program = program, .libraries = libraries, .more = now);
        CHECK_STR(o.out, "3\n"); /* it is there, and no runtime is */
        CHECK_INT(o.status, 0);
    }
    free(program);
    free(twice);
}

static void a_narrow_program_does_not_have_it(void)
{
    char *program = text("%s/narrow", folder);
    if (access(program, X_OK))
        SKIP("no program of 32 bits can be linked here");
    struct outcome bare = TRY("words", NULL, .program = program);
    if (WEXITSTATUS(bare.status) != 5)
        SKIP("no program of 32 bits can be run here");
    CHECK_STR(bare.out, "narrow\n");
    struct outcome o = TRY("words", "all", .program = program);
    drop_loader_line(o.out);
    CHECK_STR(o.out, "narrow\n");
    CHECK_INT(o.status, bare.status);
    free(program);
}

static void a_static_program_does_not_have_it(void)
{
    char *program = text("%s/static", folder);
    if (access(program, X_OK))
        SKIP("no static program can be linked here");
    struct outcome o = TRY("words", "all", .program = program);
    CHECK_STR(o.out, "static\n");
    CHECK_INT(o.status, 0);
    free(program);
}

/* No function of ours is found. */
static void check_without(const struct outcome *o)
{
    if (WEXITSTATUS(o->status) == 126)
        SKIP("such a program cannot be run from here");
    CHECK_STR(o->out, "-1\n");
}

/* A copy of the program that runs as somebody else. */
static void a_setuid_program_does_not_have_it(void)
{
    if (geteuid())
        SKIP("only root can make one");
    char *program = copy_of(alone, "setuid"), *mine = copy_of(library, "copy.so");
    REQUIRE(!chmod(place, 0755) && !chown(program, 65534, 65534) && !chmod(program, 04755));
    struct outcome o = TRY("ask", "all", .program = program, .libraries = mine);
    check_without(&o);
    unlink(program);
    free(program);
    free(mine);
}

static void a_program_with_capabilities_does_not_have_it(void)
{
    static const uint32_t bind_service[] = { 0x02000001, 1 << 10, 0, 0, 0 };
    struct statvfs st;
    if (geteuid())
        SKIP("only root can make one");
    char *program = copy_of(alone, "capable"), *mine = copy_of(library, "copy.so");
    REQUIRE(!chmod(place, 0755) && !statvfs(place, &st));
    struct outcome o = TRY("ask", "all", .program = program, .libraries = mine, .nobody = true);
    CHECK_STR(o.out, "3\n");
    if (st.f_flag & ST_NOSUID ||
        setxattr(program, "security.capability", bind_service, sizeof(bind_service), 0))
        SKIP("files get no capabilities here");
    o = TRY("ask", "all", .program = program, .libraries = mine, .nobody = true);
    check_without(&o);
    unlink(program);
    free(program);
    free(mine);
}

int main(int argc, char **argv)
{
    if (!trial_begin(argc, argv))
        return 2;
    alone = text("%s/alone", folder);
    RUN(is_quiet_without_a_runtime);
    RUN(children_are_started_in_many_ways);
    RUN(does_without_its_environment);
    RUN(does_without_the_file_system);
    RUN(does_without_the_library);
    RUN(other_libraries_may_be_there);
    RUN(another_tool_may_stand_before_us);
    RUN(a_musl_program_lives_with_it);
    RUN(a_narrow_program_does_not_have_it);
    RUN(a_static_program_does_not_have_it);
    RUN(a_setuid_program_does_not_have_it);
    RUN(a_program_with_capabilities_does_not_have_it);
    return trial_done();
}
