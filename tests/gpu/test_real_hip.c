/* SPDX-License-Identifier: Apache-2.0
 * AMD's real libraries without an AMD card: what they answer, and that they compile every kernel for the chips they
 * know.  Debian's ROCm 5.2 ends the process on a chip that is newer than itself. */
#include "base/thread.h"
#include "check.h"
#include "gpu/compile.h"
#include "tree.h"

static struct tree cache;
static bool is_long;

/* Of those that ROCm 5.2 knows.  In the short run each text is compiled in one format, for one chip of each kind in turn. */
static const struct {
    const char *arch;
    bool debug;
} chips[] = { { "gfx1030", false }, { "gfx1030", true }, { "gfx1031", false },
              { "gfx1032", false }, { "gfx906", false }, { "gfx90a", false } };

static struct compile_job job_of(size_t piece)
{
    size_t chip = piece % ARRAY_LEN(chips), storage = piece / ARRAY_LEN(chips) % GPU_STORAGES;
    return (struct compile_job){
        .api = GPU_API_HIP,
        .arch = chips[chip].arch,
        .text = &kernel_texts[piece / ARRAY_LEN(chips) / GPU_STORAGES],
        .storage = (enum gpu_storage)storage,
        .debug = chips[chip].debug,
    };
}

static bool is_in_short(const struct compile_job *job)
{
    const char *arch = (job->text - kernel_texts) % 2 ? "gfx90a" : "gfx1030";
    return job->storage == GPU_BF16 && !job->debug && !strcmp(job->arch, arch);
}

static int compile_piece(void *context, size_t piece, struct cairn_error *err)
{
    (void)context;
    struct compile_job job = job_of(piece);
    if (job.text->chip || (!is_long && !is_in_short(&job)))
        return 0;
    void *code;
    size_t size;
    if (compile_kernels(&job, &code, &size, err))
        return -1;
    bool elf = size > 64 && !memcmp(code, "\177ELF", 4);
    free(code);
    return elf ? 0 : cairn_fail(err, CAIRN_EFORMAT, "%s for %s is not ELF", job.text->file, job.arch);
}

static void hiprtc_compiles_every_kernel(void)
{
    struct cairn_error err = { 0 };
    size_t pieces = n_kernel_texts * GPU_STORAGES * ARRAY_LEN(chips);
    if (parallel_for(pieces, 0, compile_piece, NULL, &err))
        CHECK_FAIL_("%s", err.msg);
}

/* Aborts in ROCm 5.2, which is older than the chip; a newer one may know it. */
static void an_unknown_chip_is_an_ordinary_error(void)
{
    const char *const unknown[] = { "gfx1100", "gfx1999", "nonsense" };
    for (size_t i = 0; i < ARRAY_LEN(unknown); i++) {
        struct compile_job job = { .api = GPU_API_HIP, .arch = unknown[i], .text = &kernel_texts[0] };
        struct cairn_error err = { 0 };
        void *code = NULL;
        size_t size;
        int r = compile_kernels(&job, &code, &size, &err);
        free(code);
        if (!r && i == 0)
            continue;
        CHECK_INT(r, -1);
        CHECK_HAS(err.msg, unknown[i]);
        CHECK_HAS(err.msg, "compile");
    }
}

static void a_text_that_is_wrong_is_told_with_its_line(void)
{
    const struct kernel_text wrong = { .file = "wrong",
                                       .args = "",
                                       .body = "#define K_WG 64\n\nint f(void) { return x; }\n" };
    struct compile_job job = { .api = GPU_API_HIP, .arch = "gfx1030", .text = &wrong };
    struct cairn_error err = { 0 };
    void *code = NULL;
    size_t size;
    CHECK_INT(compile_kernels(&job, &code, &size, &err), -1);
    CHECK_INT(err.code, CAIRN_ELACK);
    CHECK_HAS(err.msg, "wrong.k:3:");
    free(code);
}

static void no_card_is_said_in_a_sentence(void)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    struct gpu_info *infos;
    char **reasons;
    size_t n, n_reasons;
    gpu_list(&a, &infos, &n, &reasons, &n_reasons);
    REQUIRE(n >= 1);
    CHECK_STR(infos[n - 1].name, "cpu");
    if (infos[0].api == GPU_API_HIP)
        return; /* there is a card */
    bool said = false;
    for (size_t i = 0; i < n_reasons; i++)
        said |= strstr(reasons[i], "libamdhip64") && strstr(reasons[i], "finds no device");
    CHECK(said);
    struct gpu *g;
    struct cairn_error err = { 0 };
    CHECK_INT(gpu_open("hip:0", &g, &err), -1);
    CHECK_INT(err.code, CAIRN_ELACK);
    CHECK_STR(err.msg, "no device hip:0");
}

static bool has_library(void)
{
    CLEANUP(arena_release) struct arena a = { 0 };
    struct gpu_info *infos;
    char **reasons;
    size_t n, n_reasons;
    gpu_list(&a, &infos, &n, &reasons, &n_reasons);
    for (size_t i = 0; i < n_reasons; i++)
        if (strstr(reasons[i], "libamdhip64") && strstr(reasons[i], "not found"))
            return false;
    return true;
}

int main(int argc, char **argv)
{
    is_long = argc > 1 && !strcmp(argv[1], "all");
    if (!has_library()) {
        puts("1..0 # SKIP no libamdhip64 (Debian: libamdhip64-5, libhiprtc-builtins5)");
        return 0;
    }
    tree_make(&cache);
    setenv("XDG_CACHE_HOME", cache.dir, 1);
    RUN(no_card_is_said_in_a_sentence);
    RUN(hiprtc_compiles_every_kernel);
    RUN(an_unknown_chip_is_an_ordinary_error);
    RUN(a_text_that_is_wrong_is_told_with_its_line);
    tree_remove(&cache);
    return check_done();
}
