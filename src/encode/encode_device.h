/* SPDX-License-Identifier: Apache-2.0
 * Where an encoder computes: the job's device, or the CPU after that failed.
 *
 * Text encoder and VAE only prepare data.  If one of them fails on a GPU or hangs there, it goes on on the CPU, which is
 * said once, and the cache becomes complete.  Where memory is short, it first tries with a smaller budget, that is with
 * layers from the file or with tiles. */
#ifndef CAIRN_ENCODE_ENCODE_DEVICE_H
#define CAIRN_ENCODE_ENCODE_DEVICE_H

#include "base/message_sink.h"
#include "nn/nn.h"

enum encode_part { ENCODE_TEXT = 1, ENCODE_VAE = 2 }; /* a set can have both */
const char *encode_part_name(enum encode_part part);  /* "the VAE" */

struct encode_device_options {
    enum encode_part part;
    struct gpu *g;            /* the job's device */
    bool on_cpu;              /* do not use it, as configured */
    enum gpu_storage storage; /* on that device; f32 on the CPU */
    uint64_t budget;          /* bytes on that device; 0: not known */
    uint64_t host_budget;     /* on the CPU, if that is not the job's device */
    const struct message_sink *sink;
};

struct encode_device {
    const struct encode_device_options *o;
    struct gpu *cpu;          /* owned; NULL: o->g is used */
    uint64_t budget;          /* on o->g; 0: not known */
    int tries;                /* with less than o->budget */
    struct cairn_error first; /* why it was lowered */
    struct nn nn;
};

/* The format to compute in: f32 on a CPU, f16 on a GPU, where sums between blocks are f32 in both encoders. */
enum gpu_storage encode_storage_on(const struct gpu *g);

/* o must outlive it. */
int encode_device_open(struct encode_device *d, const struct encode_device_options *o,
                       struct cairn_error *err);
void encode_device_close(struct encode_device *d);
bool encode_device_on_cpu(const struct encode_device *d);
const char *encode_device_name(const struct encode_device *d); /* "hip:0" */
const char *encode_device_note(const struct encode_device *d); /* that the budget was lowered, or "" */
uint64_t encode_device_budget(const struct encode_device *d);  /* UINT64_MAX: not known */
/* After a failure, with whatever was made on the device already closed: lowers the budget or moves to the CPU, and clears
 * err; or fails as before, because it is the CPU already, or because a CPU would fail in the same way. */
int encode_device_fall_back(struct encode_device *d, struct cairn_error *err);
/* The encoders that compute on a GPU now.  Another thread may ask: a call that never returns is one of theirs. */
unsigned encode_device_busy(void);

#endif
