/* SPDX-License-Identifier: Apache-2.0
 * What the fake HIP is told to do wrong, in words of CAIRN_FAKE_HIP:
 *
 *     fail=hipMalloc:3:2                the third call of hipMalloc answers 2
 *     deny=hipMalloc:3:1                so does every such call after it
 *     gone=hipMalloc:3:999              so does every call after it, whatever is called
 *     block=hipMalloc:3                 it never returns
 *     hang=hipModuleLaunchKernel:3      what it queues never ends: its stream is not done, and a wait never returns
 *     slow=hipModuleLaunchKernel:3:200  it takes 200 ms
 *     crawl=hipModuleLaunchKernel:3:200 so does every such call after it
 *     after=clip:2                      none of these before clip is launched the second time, and calls are counted from there
 *     unless=HSA_ENABLE_SDMA            none of these while this variable is set
 *     leaves=CAIRN_TRAIN_RESTARTS       there is no device while this variable is set
 *     spoil=hipMemcpyHtoDAsync:3        one of the bytes that it copies arrives changed
 *     without=dequantise                no kernel is found whose name begins so
 *     refuse=dequantise                 no such kernel can be launched
 *
 * Calls are counted anew when the words change.  After the answer of a lost device (214, 700 and above) every call gives it again, as the real one does. */
#ifndef CAIRN_TESTS_GPU_FAKE_TOLD_H
#define CAIRN_TESTS_GPU_FAKE_TOLD_H

#include <stdbool.h>

/* The answer that this call of `name` was told to give; 0: its own. */
int fake_injected(const char *name);
/* A kernel was launched. */
void fake_launched(const char *kernel);
/* Whether the variable that a word names is set. */
bool fake_is_set(const char *word);
/* Whether a word names the beginning of this kernel. */
bool fake_names(const char *word, const char *kernel);
/* Whether what this call queues never ends. */
bool fake_hangs(const char *name);
/* Whether what this call copies arrives changed. */
bool fake_spoils(const char *name);
void fake_never_return(void);
extern bool fake_blocked; /* something will never return: nor does the end of the process */

#endif
