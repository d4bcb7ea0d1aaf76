/* SPDX-License-Identifier: Apache-2.0
 * The cache of compiled kernels, with the fake compiler of tests/gpu. */
#include "gpu/compile.h"

#include "check.h"
#include "tree.h"
#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>

static struct tree tree;

static int compile(const char *arch, struct cairn_error *err)
{
    struct compile_job job = {
        .api = GPU_API_HIP, .arch = arch, .text = &kernel_texts[0], .storage = GPU_BF16
    };
    void *code = NULL;
    size_t size = 0;
    *err = (struct cairn_error){ 0 };
    int r = compile_kernels(&job, &code, &size, err);
    if (!r && (size < 16 || strncmp(code, "fake code for ", 14)))
        CHECK_FAIL_("%s: not the compiler's code", arch);
    free(code);
    return r;
}

/* Is it in the cache?  Then no compiler is needed. */
static bool is_kept(const char *arch)
{
    struct cairn_error err;
    const char *kc = getenv("CAIRN_KC");
    char before[512];
    snprintf(before, sizeof(before), "%s", kc ? kc : "");
    setenv("CAIRN_KC", "/nonexistent", 1);
    int r = compile(arch, &err);
    setenv("CAIRN_KC", before, 1);
    return r == 0;
}

/* The path of the only entry for a chip; the buffer is reused. */
static const char *entry(const char *arch)
{
    static char path[1024];
    char folder[512];
    path[0] = '\0';
    snprintf(folder, sizeof(folder), "%s/cairn/kernels", getenv("XDG_CACHE_HOME"));
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));)
        if (strstr(e->d_name, arch))
            snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
    if (d)
        closedir(d);
    return path;
}

static void what_was_compiled_is_kept(void)
{
    struct cairn_error err;
    CHECK(!is_kept("gfx1001"));
    CHECK_INT(compile("gfx1001", &err), 0);
    CHECK(is_kept("gfx1001"));
    CHECK(!is_kept("gfx1002"));
}

/* Each byte counts: header, size, hash, code. */
static void a_damaged_entry_is_made_anew(void)
{
    struct cairn_error err;
    CHECK_INT(compile("gfx1003", &err), 0);
    const long places[] = { 0, 9, 17, 40, -1 };
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        FILE *f = fopen(entry("gfx1003"), "r+");
        REQUIRE(f);
        fseek(f, places[i], places[i] < 0 ? SEEK_END : SEEK_SET);
        int byte = fgetc(f);
        fseek(f, -1, SEEK_CUR);
        fputc(byte ^ 0x20, f);
        fclose(f);
        CHECK(!is_kept("gfx1003"));
        CHECK_INT(compile("gfx1003", &err), 0);
        CHECK(is_kept("gfx1003"));
    }
    REQUIRE(!truncate(entry("gfx1003"), 50));
    CHECK(!is_kept("gfx1003"));
    REQUIRE(!truncate(entry("gfx1003"), 0));
    CHECK_INT(compile("gfx1003", &err), 0);
    CHECK(is_kept("gfx1003"));
}

static void a_cache_that_cannot_be_written_costs_time_only(void)
{
    struct cairn_error err;
    char before[512], file[600];
    snprintf(before, sizeof(before), "%s", getenv("XDG_CACHE_HOME"));
    snprintf(file, sizeof(file), "%s", tree_path(&tree, "a-file"));
    tree_put(&tree, "a-file", "");
    setenv("XDG_CACHE_HOME", file, 1); /* also where root may write anything */
    CHECK_INT(compile("gfx1004", &err), 0);
    CHECK(!is_kept("gfx1004"));
    setenv("XDG_CACHE_HOME", "relative", 1);
    unsetenv("HOME");
    CHECK_INT(compile("gfx1004", &err), 0);
    CHECK(!is_kept("gfx1004"));
    setenv("XDG_CACHE_HOME", before, 1);
}

static int files_in_cache(void)
{
    char folder[512];
    int n = 0;
    snprintf(folder, sizeof(folder), "%s/cairn/kernels", getenv("XDG_CACHE_HOME"));
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));)
        n += e->d_name[0] != '.';
    if (d)
        closedir(d);
    return n;
}

/* A disk that is full after 20 bytes: no half entry stays behind. */
static void a_full_disk_leaves_nothing(void)
{
    struct cairn_error err;
    struct rlimit before, little;
    int n = files_in_cache();
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    little = (struct rlimit){ 20, before.rlim_max };
    setrlimit(RLIMIT_FSIZE, &little);
    int r = compile("gfx1005", &err);
    setrlimit(RLIMIT_FSIZE, &before);
    /* The compiler's own output may be what does not fit. */
    CHECK(r == 0 || err.msg[0]);
    CHECK_INT(files_in_cache(), n);
    CHECK(!is_kept("gfx1005"));
}

static void a_missing_compiler_is_named(void)
{
    struct cairn_error err;
    const char *kc = getenv("CAIRN_KC");
    char before[512];
    snprintf(before, sizeof(before), "%s", kc ? kc : "");
    setenv("CAIRN_KC", "/nonexistent/cairn-kc", 1);
    CHECK_INT(compile("gfx1006", &err), -1);
    CHECK_HAS(err.msg, "/nonexistent/cairn-kc");
    unsetenv("CAIRN_KC");
    CHECK_INT(compile("gfx1006", &err), -1);
    CHECK_HAS(err.msg, "cairn-kc");
    setenv("CAIRN_KC", before, 1);
}

int main(void)
{
    tree_make(&tree);
    setenv("XDG_CACHE_HOME", tree.dir, 1);
    RUN(what_was_compiled_is_kept);
    RUN(a_damaged_entry_is_made_anew);
    RUN(a_cache_that_cannot_be_written_costs_time_only);
    RUN(a_full_disk_leaves_nothing);
    RUN(a_missing_compiler_is_named);
    tree_remove(&tree);
    return check_done();
}
