/* SPDX-License-Identifier: Apache-2.0
 * Solvers of the flow from noise to a latent: how a sample goes from one noise level to the next.
 *
 * A sigma is the share of noise in x.  Those of N steps are N values spaced evenly from 0.999 towards 0, shifted by
 * shift * s / (1 + (shift - 1) * s), and 0 at the end.  The model says the velocity, noise - latent.
 *
 * UniPC (https://arxiv.org/abs/2302.04867) is that of Wan's own code: order 2, the B(h) of its variant bh2, and a
 * corrector.  Euler takes one straight line per step.  A solver belongs to one sample, and its results depend on the
 * arguments alone. */
#ifndef CAIRN_VIDEO_SOLVER_H
#define CAIRN_VIDEO_SOLVER_H

#include <stddef.h>

enum solver_kind { SOLVER_UNIPC, SOLVER_EULER };

struct solver;

/* For x of so many values.  steps and shift are above 0.  NULL: no memory. */
struct solver *solver_new(enum solver_kind kind, size_t steps, double shift, size_t values);
void solver_free(struct solver *s); /* accepts NULL */

size_t solver_steps(const struct solver *s);
/* Of x before this step; 0 after the last one, where step is solver_steps. */
double solver_sigma(const struct solver *s, size_t step);
/* What the model is told of it: 1000 sigma without its fraction. */
double solver_timestep(const struct solver *s, size_t step);
/* x becomes that of the next step.  At most solver_steps calls, in order. */
void solver_step(struct solver *s, float *x, const float *velocity);

#endif
