/* SPDX-License-Identifier: Apache-2.0 */
#include "encode/encode_device.h"

#include <stdatomic.h>

static atomic_uint busy;

unsigned encode_device_busy(void)
{
    return atomic_load(&busy);
}

const char *encode_part_name(enum encode_part part)
{
    return part == ENCODE_TEXT ? "the text encoder" : "the VAE";
}

enum gpu_storage encode_storage_on(const struct gpu *g)
{
    const struct gpu_info *i = g ? gpu_info(g) : NULL;
    return !i || i->api == GPU_API_HOST ? GPU_F32 : GPU_F16;
}

bool encode_device_on_cpu(const struct encode_device *d)
{
    return d->cpu || gpu_info(d->o->g)->api == GPU_API_HOST;
}

const char *encode_device_name(const struct encode_device *d)
{
    return gpu_info(d->cpu ? d->cpu : d->o->g)->name;
}

const char *encode_device_note(const struct encode_device *d)
{
    return d->tries ? "; more is out of memory" : "";
}

uint64_t encode_device_budget(const struct encode_device *d)
{
    uint64_t bytes = d->cpu ? d->o->host_budget : d->budget;
    return bytes ? bytes : UINT64_MAX;
}

static int open_cpu(struct encode_device *d, struct cairn_error *err)
{
    return gpu_open("cpu", &d->cpu, err) || nn_open(&d->nn, d->cpu, GPU_F32, err) ? -1 : 0;
}

int encode_device_open(struct encode_device *d, const struct encode_device_options *o,
                       struct cairn_error *err)
{
    *d = (struct encode_device){ .o = o, .budget = o->budget };
    if (gpu_info(o->g)->api != GPU_API_HOST && (o->on_cpu || gpu_lost(o->g)))
        return open_cpu(d, err);
    if (encode_device_on_cpu(d))
        return nn_open(&d->nn, o->g, GPU_F32, err);
    atomic_fetch_or(&busy, o->part);
    return nn_open(&d->nn, o->g, o->storage, err);
}

void encode_device_close(struct encode_device *d)
{
    nn_close(&d->nn);
    atomic_fetch_and(&busy, ~(unsigned)d->o->part);
    gpu_close(d->cpu);
    d->cpu = NULL;
}

/* What a CPU might do better.  A damaged file it would not. */
static bool is_of_device(const struct cairn_error *err)
{
    return err->code == CAIRN_EDEVICE || err->code == CAIRN_ENOMEM || err->code == CAIRN_ELACK;
}

/* A plan does not know what the pool and the libraries add, nor who else uses the device. */
static bool lower_budget(struct encode_device *d, const struct cairn_error *err)
{
    enum { TRIES = 4 };
    if (err->code != CAIRN_ENOMEM || !d->budget || d->tries >= TRIES)
        return false;
    if (!d->tries++)
        d->first = *err;
    d->budget -= d->budget / 4;
    return true;
}

int encode_device_fall_back(struct encode_device *d, struct cairn_error *err)
{
    if (encode_device_on_cpu(d) || !is_of_device(err))
        return -1;
    if (lower_budget(d, err)) {
        *err = (struct cairn_error){ 0 };
        return 0;
    }
    message_say(d->o->sink, "warning: %s failed on %s: %s; it continues on the CPU",
                encode_part_name(d->o->part), gpu_info(d->o->g)->name,
                err->code == CAIRN_ENOMEM && d->tries ? d->first.msg : err->msg);
    d->tries = 0;
    *err = (struct cairn_error){ 0 };
    nn_close(&d->nn);
    atomic_fetch_and(&busy, ~(unsigned)d->o->part);
    return open_cpu(d, err);
}
