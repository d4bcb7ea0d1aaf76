/* SPDX-License-Identifier: Apache-2.0 */
#include "rules/check_ctx.h"

#include "base/str.h"
#include "rules/override.h"
#include "rules/remedy.h"

static const char *build_word(enum torch_build b)
{
    static const char *const words[] = {
        [TORCH_BUILD_UNKNOWN] = "unknown",
        [TORCH_ROCM] = "ROCm",
        [TORCH_CUDA] = "CUDA",
        [TORCH_CPU] = "CPU",
        [TORCH_XPU] = "XPU",
    };
    return words[b];
}

static const char *say_torch(const struct check_ctx *l, const struct torch_facts *t)
{
    return ctx_text(l, "torch %s in %s", t->version.s ? t->version.s : "of unknown version", t->site);
}

struct finding check_torch_present(const struct check_ctx *l)
{
    if (l->torch)
        return found_ok(l, "%s (%s)", say_torch(l, l->torch), l->torch->how);
    if (!l->facts->root.live)
        return found_unknown("no PyTorch in this captured tree", "it may contain only the hardware's files",
                             "cairn doctor --torch DIR");
    const struct command_facts *c = &l->facts->command;
    if (c->python && c->sure)
        return found(CHECK_FAIL, ctx_text(l, "no PyTorch in %s", c->python), "the command runs this Python",
                     remedy_torch(l));
    return found(CHECK_FAIL, "no PyTorch found",
                 "looked in the active virtual environment, ./venv, ./.venv, conda and the python3 on PATH",
                 remedy_torch(l) ? remedy_torch(l) : "cairn doctor --torch DIR    # if it is somewhere else");
}

struct finding check_torch_build(const struct check_ctx *l)
{
    const struct torch_facts *t = l->torch;
    if (!t)
        return found_skip("no PyTorch");
    if (t->build == TORCH_ROCM)
        return found_ok(l, "built for ROCm (HIP %s)", t->hip.s ? t->hip.s : "of unknown version");
    if (t->build == TORCH_BUILD_UNKNOWN)
        return found_unknown("PyTorch: unknown which backend it was built for",
                             "torch/version.py does not say", "cairn doctor --probe");
    return found(
        CHECK_FAIL, ctx_text(l, "%s is a %s build", say_torch(l, t), build_word(t->build)),
        "it cannot use an AMD GPU; pip installs such a wheel when no ROCm index is given, or when one is "
        "already installed",
        remedy_torch(l));
}

struct finding check_torch_several(const struct check_ctx *l)
{
    const struct facts *f = l->facts;
    if (f->n_torches < 2)
        return found_skip("only one PyTorch");
    CLEANUP(str_release) struct str others = { 0 };
    for (size_t i = 1; i < f->n_torches; i++)
        str_addf(&others, "%s%s", i > 1 ? ", " : "", say_torch(l, &f->torches[i]));
    bool differ = false;
    for (size_t i = 1; i < f->n_torches; i++)
        differ = differ || f->torches[i].build != f->torches[0].build ||
                 version_compare(f->torches[i].parsed, f->torches[0].parsed);
    if (!differ)
        return found_ok(l, "%zu copies of the same PyTorch; %s is used", f->n_torches, f->torches[0].site);
    return found(CHECK_WARN,
                 ctx_text(l, "%s is used (%s); also found: %s", say_torch(l, &f->torches[0]),
                          f->torches[0].how, others.s),
                 "how the trainer's Python is started decides which one it gets",
                 "cairn doctor --torch DIR    # checks another one");
}

/* PyTorch runs another chip's code, or could. A wheel with code for the chip comes first, if there is one;
 * the override works immediately. */
static struct finding judge_override(const struct check_ctx *l, const char *target)
{
    const struct plan_var *v = plan_override(l->plan, l->gpu);
    const char *line = v ? ctx_text(l, "export %s=%s", v->name, v->value) : NULL;
    const char *gfx = l->gpu->gfx.s, *torch = remedy_torch(l);
    bool better = torch && override_has_own_wheel(l->chip, l->torch);
    if (!line && !better)
        return found_ok(l, "no code for %s, but the override runs %s code, which is compatible", gfx, target);
    if (!line)
        return found(
            CHECK_WARN,
            ctx_text(l, "this PyTorch has no code for %s and runs %s code through an override", gfx, target),
            "another chip's code can hang or fault; a wheel with code for this chip exists", torch);
    const char *both = ctx_text(l, "%s\n# or right now, with the installed PyTorch%s:\n%s",
                                torch ? torch : "", better ? ", at the risk of hangs" : "", line);
    return found(
        CHECK_FAIL,
        ctx_text(l, "this PyTorch has no code for %s; it can run %s code with an override", gfx, target),
        better
            ? "without the override the first kernel fails with \"invalid device function\"; another chip's "
              "code can hang or fault, so prefer a wheel with code for this chip"
            : "same instructions and no more registers than the chip has; without the override the first "
              "kernel fails with \"invalid device function\"",
        torch ? both : line);
}

struct finding check_torch_target(const struct check_ctx *l)
{
    const struct torch_facts *t = l->torch;
    const char *target = ctx_target(l);
    if (!t || t->build != TORCH_ROCM || !target)
        return found_skip("no ROCm build of PyTorch, or no GPU with a known target");
    const struct override_wheel wheel = override_wheel_of(t);
    const struct targets *code = &wheel.code;
    const char *gfx = l->gpu->gfx.s;
    if (!code->from)
        return found_unknown(ctx_text(l, "PyTorch: unknown whether it has code for %s", gfx),
                             "its list of targets is not readable", "cairn doctor --probe");
    if (ctx_has_code(code, gfx))
        return found_ok(l, "this PyTorch has code for %s (from %s)", gfx, code->from);
    if (!str_eq(target, gfx) && ctx_has_code(code, target))
        return judge_override(l, target);
    CLEANUP(str_release) struct str list = { 0 };
    for (size_t i = 0; i < code->n; i++)
        str_addf(&list, " %s", code->name[i]);
    const char *remedy = remedy_torch(l);
    return found(
        CHECK_FAIL, ctx_text(l, "this PyTorch has no code for %s", gfx),
        ctx_text(l, "it has%s; the first kernel fails with \"invalid device function\", and no override fits",
                 list.len ? list.s : " none"),
        remedy ? remedy : "cairn gpu --chips    # no wheel supports this chip");
}

struct finding check_torch_device_wheels(const struct check_ctx *l)
{
    const struct torch_facts *t = l->torch;
    if (!t || !t->kpack || !l->gpu || !l->gpu->gfx.s)
        return found_skip("this wheel does not split off device code");
    const char *gfx = l->gpu->gfx.s;
    if (!t->device_wheels.from)
        return found_unknown("device wheels: unknown which are installed", NULL, NULL);
    if (ctx_has_code(&t->device_wheels, gfx))
        return found_ok(l, "the device wheel for %s is installed", gfx);
    return found(CHECK_FAIL, ctx_text(l, "the device wheel for %s is not installed", gfx),
                 "the libraries load without it but fail at the first kernel", remedy_torch(l));
}

struct finding check_torch_files(const struct check_ctx *l)
{
    const struct torch_facts *t = l->torch;
    if (!t)
        return found_skip("no PyTorch");
    if (!t->problems.n)
        return found_ok(l, "its files are readable and consistent");
    return found(
        CHECK_WARN, t->problems.text[0],
        t->problems.n > 1
            ? ctx_text(l, "and %zu more like it: the installation is incomplete or mixed", t->problems.n - 1)
            : "the installation is incomplete or mixed",
        remedy_torch(l));
}

struct finding check_torch_known_bad(const struct check_ctx *l)
{
    const struct torch_facts *t = l->torch;
    if (!t || t->build != TORCH_ROCM || !l->gpu)
        return found_skip("no ROCm build of PyTorch");
    if (!t->parsed.n)
        return found_unknown("the version of this PyTorch is unknown", NULL, NULL);
    bool aotriton_011 =
        t->aotriton_version.s
            ? str_starts(t->aotriton_version.s, "0.11.0") || str_starts(t->aotriton_version.s, "0.11b")
            : version_at_least(t->parsed, 2, 9, 0) && version_below(t->parsed, 2, 10, 0);
    if (ctx_is(l, "gfx1100") && aotriton_011)
        return found(
            CHECK_WARN, ctx_text(l, "torch %s bundles AOTriton 0.11b", t->version.s),
            "its fused attention loses accuracy and can produce NaN on gfx1100; 0.11.1 (torch 2.10) fixes it",
            remedy_torch(l));
    return found_ok(l, "no known bug of torch %s on this chip", t->version.s);
}
