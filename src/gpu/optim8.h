/* SPDX-License-Identifier: Apache-2.0
 * The 8-bit codes of adamw8: "dynamic" maps as in "8-bit Optimizers via Block-wise Quantization" (Dettmers
 * and others, 2021, https://arxiv.org/abs/2110.02861), which bitsandbytes uses too.  Seven decades below 1,
 * with twice as many values in each as in the one below; 0; and 1.  m has both signs, v is not negative. */
#ifndef CAIRN_GPU_OPTIM8_H
#define CAIRN_GPU_OPTIM8_H

enum { OPTIM8_TABLES = 4 * 256, OPTIM8_ZERO_M = 127, OPTIM8_ZERO_V = 0 };

/* The values of m, what lies half way between each and the next, and the same of v. */
void optim8_tables(float out[OPTIM8_TABLES]);

#endif
