/* SPDX-License-Identifier: Apache-2.0
 * Solvers: schedules, what one step is, and how fast the error falls. */
#include "check.h"
#include "base/cleanup.h"
#include "video/solver.h"
#include <math.h>
#include <stdlib.h>

static const int kinds[] = { SOLVER_UNIPC, SOLVER_EULER };

static struct solver *open_solver(int kind, size_t steps, double shift, size_t values)
{
    struct solver *s = solver_new((enum solver_kind)kind, steps, shift, values);
    if (!s)
        exit(99);
    return s;
}

static void schedule(void)
{
    for (size_t k = 0; k < 2; k++) {
        struct solver *s = open_solver(kinds[k], 20, 3, 1);
        CHECK_INT(solver_steps(s), 20);
        for (size_t i = 0; i < 20; i++) {
            double even = 0.999 * (20 - (double)i) / 20, want = 3 * even / (1 + 2 * even);
            CHECK(fabs(solver_sigma(s, i) - want) < 1e-7);
            CHECK(solver_sigma(s, i) > solver_sigma(s, i + 1));
            CHECK(solver_timestep(s, i) == floor(1000 * solver_sigma(s, i)));
        }
        CHECK(solver_sigma(s, 20) == 0);
        solver_free(s);
    }
}

/* 666 and 333 must not become 665 and 332 by rounding. */
static void whole_timesteps(void)
{
    struct solver *s = open_solver(SOLVER_EULER, 3, 1, 1);
    CHECK(solver_timestep(s, 0) == 999);
    CHECK(solver_timestep(s, 1) == 666);
    CHECK(solver_timestep(s, 2) == 333);
    solver_free(s);
}

/* Where the velocity is right everywhere and constant, every solver reaches the latent, in one step or in many. */
static void straight(void)
{
    const float latent[] = { 1.5f, -2, 0 }, noise[] = { -1, 0.25f, 3 };
    const size_t steps[] = { 1, 2, 3, 7 };
    for (size_t k = 0; k < 2; k++)
        for (size_t n = 0; n < ARRAY_LEN(steps); n++) {
            struct solver *s = open_solver(kinds[k], steps[n], 5, 3);
            double sigma = solver_sigma(s, 0);
            float x[3], v[3];
            for (size_t i = 0; i < 3; i++) {
                v[i] = noise[i] - latent[i];
                x[i] = (float)((1 - sigma) * (double)latent[i] + sigma * (double)noise[i]);
            }
            for (size_t i = 0; i < steps[n]; i++)
                solver_step(s, x, v);
            for (size_t i = 0; i < 3; i++)
                CHECK(fabsf(x[i] - latent[i]) < 1e-5f);
            solver_free(s);
        }
}

/* The flow of a normal distribution of latents with this deviation: x0 expected at x is d^2 (1 - s) x / ((1 - s)^2 d^2
 * + s^2), and x ends at d x / sqrt((1 - s)^2 d^2 + s^2). */
static double error_of(int kind, size_t steps)
{
    const double d = 0.5;
    struct solver *s = open_solver(kind, steps, 3, 1);
    double sigma = solver_sigma(s, 0), first = (1 - sigma) * (1 - sigma) * d * d + sigma * sigma;
    float x = 1;
    double want = d / sqrt(first);
    for (size_t i = 0; i < steps; i++) {
        sigma = solver_sigma(s, i);
        double x0 = d * d * (1 - sigma) * (double)x / ((1 - sigma) * (1 - sigma) * d * d + sigma * sigma);
        float v = (float)(((double)x - x0) / sigma);
        solver_step(s, &x, &v);
    }
    solver_free(s);
    return fabs((double)x - want);
}

static void order(void)
{
    CHECK(error_of(SOLVER_EULER, 16) < 0.7 * error_of(SOLVER_EULER, 8));
    CHECK(error_of(SOLVER_UNIPC, 16) < 0.4 * error_of(SOLVER_UNIPC, 8));
    CHECK(error_of(SOLVER_UNIPC, 16) < 0.5 * error_of(SOLVER_EULER, 16));
}

int main(void)
{
    RUN(schedule);
    RUN(whole_timesteps);
    RUN(straight);
    RUN(order);
    return check_done();
}
