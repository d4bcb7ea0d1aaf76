/* SPDX-License-Identifier: Apache-2.0
 * What the files of the Wan task share: task_wan.c opens it, task_wan_batch.c makes its batches,
 * task_wan_meta.c the metadata of its files,
 * task_wan_files.c their names. */
#ifndef CAIRN_TRAIN_TASK_WAN_INSIDE_H
#define CAIRN_TRAIN_TASK_WAN_INSIDE_H

#include "nn/wan_work.h"
#include "train/sample_files.h"
#include "train/task_wan.h"
#include "train/wan_generate.h"
#include "video/batches.h"
#include "video/prompts.h"

/* The validation loss is told for each quarter of the timesteps too. */
enum { WAN_QUARTERS = 4 };

/* Memory for one micro-batch on the host. */
struct wan_host_batch {
    size_t samples; /* that it holds */
    float *x, *target, *text, *clip;
    float *times, *weights;
    float *latents, *noise; /* of one sample */
};

/* Samples, where sample.every is set. */
struct wan_samples {
    struct sample_prompt *prompts; /* complete */
    size_t n;
    const char *const *dirs; /* where texts are cached */
    size_t n_dirs;
    float **images; /* latents of each prompt's image, once encoded; NULL: none */
    bool *said;     /* of each prompt: why it failed */
    bool off, said_sheet;
    struct sample_file *made; /* of the last time */
    size_t n_made;
    const char **lora_files;
    double *lora_strengths;
    size_t n_loras;
    size_t n_own;      /* the first of them, which a prompt's strength of the LoRA scales */
    size_t lora_bytes; /* of their memory on the device */
    bool loras_applied;
    double applied_scale; /* of those of n_own */
    /* After an OOM: 0 if memory was freed, so that the sample can be tried again.  NULL: it cannot. */
    int (*shrink)(void *to, struct cairn_error *why);
    void *shrink_to;
};

struct wan_job {
    struct task task; /* first */
    struct wan_keys keys;
    struct wan_files files;
    enum wan_task kind; /* of the model */
    struct wan_shape shape;
    struct video_cache *cache; /* NULL: there are no data, and only the size is asked for */
    struct batches *batches;
    struct batches *regularisation; /* of ai-toolkit, for every other step; NULL: none */
    size_t *val_items;              /* held out */
    size_t n_val;
    size_t clips, images; /* that can be used, with those held out */
    struct wan *wan;
    struct flow_options flow;
    enum flow_recipe recipe;
    bool both;                 /* experts */
    bool base_alone;           /* without a LoRA of its own */
    enum flow_side side;       /* of the only expert; FLOW_ANY: there are none, or both are trained */
    size_t cells;              /* of the largest latent, in one channel */
    struct wan_pixels largest; /* the same */
    struct video_item planned; /* without caches: its size alone */
    struct video_item empty;   /* the text of the empty caption alone; for captions that are dropped */
    struct wan_host_batch host;
    struct wan_samples samples;
    int64_t started; /* seconds since 1970 */
};

/* ---- task_wan_size.c ---- */

/* Of a latent. */
struct wan_pixels wan_pixels_of(const struct wan_shape *s, size_t width, size_t height, size_t frames);
/* The largest clip is that of data.size. */
int wan_job_set_size(struct wan_job *t, struct cairn_error *err);
void wan_job_pictures(const struct task *t, struct task_pictures *out);

/* ---- task_wan_data.c ---- */

/* Opens the caches; where only a plan is wanted and there are none, data.size counts. */
int wan_job_open_data(struct wan_job *t, struct cairn_error *err);

/* ---- task_wan_batch.c ---- */

/* The base that a step trains: 0, or with both experts 1 for the one for much noise. */
size_t wan_job_expert(const struct wan_job *t, uint64_t step);
/* The work of a step: that of its linears and of its attention, which grows with the square of the tokens. */
double wan_job_step_cost(const struct task *task, uint64_t step);
int wan_job_put(struct task *task, struct work *w, size_t slot, uint64_t step, size_t micro, size_t n,
                struct cairn_error *err);
/* Batch `index` of n validation samples is one item with n noises at one time.  Item, time and noise of a sample
 * follow from the seed and its number alone, however large the micro-batches are. */
int wan_job_put_val(struct task *task, struct work *w, uint64_t index, size_t n, struct cairn_error *err);
size_t wan_job_val_expert(const struct wan_job *t, uint64_t index, size_t n);
void wan_job_free_batch(struct wan_host_batch *b);

/* ---- task_wan_sample_open.c ---- */

/* Reads the prompts, and encodes those that are not cached.  What makes samples impossible is said; they are left out. */
int wan_samples_open(struct wan_job *t, struct cairn_error *err);
/* The same without data, for a model that was saved: what makes samples impossible is an error. */
int wan_samples_open_saved(struct wan_job *t, const struct task_saved *s, struct cairn_error *err);
void wan_samples_close(struct wan_job *t);
/* No samples from now on. */
void wan_samples_say_off(struct wan_job *t, const char *why);

/* Of a complete prompt. */
struct wan_size wan_sample_size(const struct wan_job *t, const struct sample_prompt *p);
void wan_sample_guidance(const struct wan_job *t, const struct sample_prompt *p, struct wan_clip *c);
/* The file of a text in the caches; NULL: there is none. */
const char *wan_sample_text(const struct wan_job *t, const char *text);
/* Encodes the image of prompt i, unless that is done or it has none. */
int wan_sample_image(struct wan_job *t, size_t i, struct cairn_error *err);
struct decode_options wan_sample_vae(const struct wan_job *t);
bool wan_sample_is_stopped(const struct wan_job *t);
/* Why prompt i has no sample; once. */
void wan_sample_say_failed(struct wan_job *t, size_t i, const struct cairn_error *why);

/* ---- task_wan_sample.c ---- */

struct work_bytes wan_job_sample_bytes(const struct task *task);
int wan_job_sample(struct task *task, const char *dir, uint64_t step, struct str *text,
                   struct cairn_error *err);
/* Makes those of a saved model, once, and releases its memory.  One that fails is said, and the others go on. */
int wan_samples_make(struct wan_job *t, const char *dir, uint64_t step, struct cairn_error *err);

/* ---- task_wan_meta.c ---- */

/* The metadata of the LoRA's files; `job` is a struct wan_job. */
void wan_job_describe(const void *job, uint64_t step, struct arena *a, struct wan_save_meta *out);

/* ---- task_wan_files.c ---- */

/* What the LoRA's files are called, without what stands for the step. */
const char *wan_job_file_name(const struct wan_job *t);
/* How many were complete after so many steps. */
uint64_t wan_job_epochs(const struct wan_job *t, uint64_t steps);
bool wan_job_is_save_due(const struct task *task, uint64_t step);
int wan_job_publish(const struct task *task, const char *checkpoint, uint64_t step, struct cairn_error *err);
const char *wan_job_use(const struct task *task, bool finished, struct arena *a);

#endif
