/* SPDX-License-Identifier: Apache-2.0
 * The block in which activations follow each other. */
#include "base/int.h"
#include "nn/vae_inside.h"
#include "nn/work_memory.h"
#include <assert.h>
#include <string.h>

size_t vae_memory_add(struct vae_memory *m, size_t bytes)
{
    size_t at = 0, i = 0;
    bytes = align_up(bytes ? bytes : 1, WORK_ALIGN);
    for (; i < m->n && m->used[i].at - at < bytes; i++)
        at = m->used[i].at + m->used[i].bytes;
    assert(m->n < sizeof(m->used) / sizeof(m->used[0]));
    memmove(&m->used[i + 1], &m->used[i], (m->n - i) * sizeof(m->used[0]));
    m->used[i] = (struct vae_span){ at, bytes };
    m->n++;
    m->most = at + bytes > m->most ? at + bytes : m->most;
    return at;
}

void vae_memory_drop(struct vae_memory *m, size_t at)
{
    for (size_t i = 0; i < m->n; i++)
        if (m->used[i].at == at) {
            memmove(&m->used[i], &m->used[i + 1], (m->n - i - 1) * sizeof(m->used[0]));
            m->n--;
            return;
        }
    assert(!"not in use");
}
