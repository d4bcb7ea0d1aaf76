/* SPDX-License-Identifier: Apache-2.0 */
#include "video/solver.h"
#include "base/int.h"
#include "base/thread.h"
#include <assert.h>
#include <math.h>
#include <stdlib.h>

/* The noise that the schedule of Wan's own code begins with, before the shift: in f32, so that a time which is a whole
 * number keeps it when its fraction is cut off. */
static const double sigma_most = (double)0.999f;

struct solver {
    enum solver_kind kind;
    size_t steps, step, values;
    double *sigmas; /* steps + 1 */
    /* UniPC: where the last step began, the x0 that it predicted, and the x0 of the step before. */
    float *begin, *x0, *older;
    size_t order; /* of the last step */
};

static double *new_sigmas(size_t steps, double shift)
{
    double *sigmas = calloc(steps + 1, sizeof(*sigmas));
    for (size_t i = 0; sigmas && i < steps; i++) {
        double even = sigma_most - (double)i * (sigma_most / (double)steps);
        sigmas[i] = shift * even / (1 + (shift - 1) * even);
    }
    return sigmas;
}

struct solver *solver_new(enum solver_kind kind, size_t steps, double shift, size_t values)
{
    struct solver *s = calloc(1, sizeof(*s));
    assert(steps && shift > 0);
    if (!s)
        return NULL;
    *s = (struct solver){ .kind = kind, .steps = steps, .values = values };
    s->sigmas = new_sigmas(steps, shift);
    if (kind == SOLVER_UNIPC) {
        s->begin = calloc(values + 1, sizeof(*s->begin));
        s->x0 = calloc(values + 1, sizeof(*s->x0));
        s->older = calloc(values + 1, sizeof(*s->older));
    }
    if (s->sigmas && (kind != SOLVER_UNIPC || (s->begin && s->x0 && s->older)))
        return s;
    solver_free(s);
    return NULL;
}

void solver_free(struct solver *s)
{
    if (!s)
        return;
    free(s->sigmas);
    free(s->begin);
    free(s->x0);
    free(s->older);
    free(s);
}

size_t solver_steps(const struct solver *s)
{
    return s->steps;
}

double solver_sigma(const struct solver *s, size_t step)
{
    assert(step <= s->steps);
    return s->sigmas[step];
}

double solver_timestep(const struct solver *s, size_t step)
{
    return trunc(1000 * solver_sigma(s, step));
}

/* ---- UniPC ---- */

static double lambda_of(const struct solver *s, size_t step)
{
    return log((1 - s->sigmas[step]) / s->sigmas[step]);
}

/* What a step from x is made of: x' = begin * x + x0 * (predicted at x) + older * (at the step before) + newer * (at
 * x', for the corrector). */
struct unipc {
    double begin, x0, older, newer;
};

/* alpha' B(h), and h itself, of the step from `step` to the next one, whose sigma is above 0. */
static double scale_of(const struct solver *s, size_t step, double *h)
{
    *h = lambda_of(s, step + 1) - lambda_of(s, step);
    return (1 - s->sigmas[step + 1]) * expm1(-*h);
}

static struct unipc predictor(const struct solver *s, size_t step, size_t order)
{
    double h;
    if (step + 1 == s->steps)
        return (struct unipc){ .x0 = 1 }; /* the limit as sigma goes to 0 */
    double scale = scale_of(s, step, &h);
    struct unipc u = { .begin = s->sigmas[step + 1] / s->sigmas[step], .x0 = -scale };
    if (order < 2)
        return u;
    double r = (lambda_of(s, step - 1) - lambda_of(s, step)) / h;
    u.older = -scale * 0.5 / r;
    u.x0 -= u.older;
    return u;
}

/* The step again, now that the x0 at its end is known. */
static struct unipc corrector(const struct solver *s, size_t step, size_t order)
{
    double h, scale = scale_of(s, step, &h);
    struct unipc u = { .begin = s->sigmas[step + 1] / s->sigmas[step], .x0 = -scale };
    double older = 0, newer = 0.5;
    if (order > 1) {
        double r = (lambda_of(s, step - 1) - lambda_of(s, step)) / h, b = expm1(-h);
        double phi = -b / h - 1, b1 = phi / b, b2 = (-phi / h - 0.5) * 2 / b;
        double rho = (b2 - b1) / (r - 1); /* rho + newer = b1, r rho + newer = b2 */
        older = rho / r;
        newer = b1 - rho;
    }
    u.older = -scale * older;
    u.newer = -scale * newer;
    u.x0 -= u.older + u.newer;
    return u;
}

/* ---- a step ---- */

enum { PIECE = 65536 }; /* values of a piece of work */

struct stepping {
    struct solver *s;
    float *x;
    const float *velocity;
    struct unipc next, again;
};

static void euler_values(const struct stepping *k, size_t first, size_t end)
{
    const struct solver *s = k->s;
    double by = s->sigmas[s->step + 1] - s->sigmas[s->step];
    for (size_t i = first; i < end; i++)
        k->x[i] = (float)((double)k->x[i] + by * (double)k->velocity[i]);
}

static void unipc_values(const struct stepping *k, size_t first, size_t end)
{
    struct solver *s = k->s;
    const struct unipc next = k->next, again = k->again;
    double sigma = s->sigmas[s->step];
    for (size_t i = first; i < end; i++) {
        double at = (double)k->x[i], x0 = at - sigma * (double)k->velocity[i];
        if (s->step)
            at = again.begin * (double)s->begin[i] + again.x0 * (double)s->x0[i] +
                 again.older * (double)s->older[i] + again.newer * x0;
        k->x[i] = (float)(next.begin * at + next.x0 * x0 + next.older * (double)s->x0[i]);
        s->begin[i] = (float)at;
        s->older[i] = s->x0[i];
        s->x0[i] = (float)x0;
    }
}

static int step_piece(void *context, size_t piece, struct cairn_error *err)
{
    const struct stepping *k = context;
    size_t first = piece * PIECE, end = at_most(first + PIECE, k->s->values);
    (void)err;
    if (k->s->kind == SOLVER_UNIPC)
        unipc_values(k, first, end);
    else
        euler_values(k, first, end);
    return 0;
}

void solver_step(struct solver *s, float *x, const float *velocity)
{
    /* The first step knows no older x0, and the last one gives x0 itself. */
    size_t order = !s->step || s->step + 1 == s->steps ? 1 : 2;
    struct stepping k = { .s = s, .x = x, .velocity = velocity };
    struct cairn_error err;
    assert(s->step < s->steps);
    if (s->kind == SOLVER_UNIPC) {
        k.next = predictor(s, s->step, order);
        if (s->step)
            k.again = corrector(s, s->step - 1, s->order);
    }
    parallel_for(div_up(s->values, PIECE), 0, step_piece, &k, &err);
    s->order = order;
    s->step++;
}
