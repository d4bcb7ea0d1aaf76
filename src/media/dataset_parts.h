/* SPDX-License-Identifier: Apache-2.0
 * What the files of dataset.h share: a description that is read, before any folder is listed. */
#ifndef CAIRN_MEDIA_DATASET_PARTS_H
#define CAIRN_MEDIA_DATASET_PARTS_H

#include "base/yaml.h"
#include "media/dataset.h"
#include "media/dataset_keys.h"

enum dataset_find {
    DATASET_PICTURES = 1 << 0,
    DATASET_CLIPS = 1 << 1,
    DATASET_SUBFOLDERS = 1 << 2, /* searched too */
};

/* A description of one dataset. */
struct dataset_source {
    struct dataset_block block;
    const char *folder;      /* or else: */
    const char *list;        /* a .jsonl file, or ai-toolkit's .json of captions */
    const char *relative_to; /* the folder of relative paths in it; NULL: the current one */
    const char *place;       /* "data.toml:8:19: video_directory": what names it; NULL: no file does */
    unsigned find;
    const char *control_folder, *mask_folder;

    bool by_area;                   /* ai-toolkit's buckets */
    size_t side;                    /* of those */
    bool square;                    /* ai-toolkit without buckets: everything is side x side */
    struct bucket_set buckets;      /* of pictures */
    struct bucket_set clip_buckets; /* of clips */

    enum dataset_extract extract;
    const size_t *frames; /* ascending, 4n+1 */
    size_t n_frames;
    size_t stride, samples, max_frames;
    double source_fps;      /* what the description says that clips have; 0: what each clip says */
    double fps;             /* frames are dropped to reach this rate; 0: none are */
    bool trim_tail, shrink; /* of DATASET_LENGTH */

    const char *caption_extension; /* NULL: none; with its dot */
    const char *caption_default;
    bool caption_optional; /* no caption is the empty prompt */
    bool has_trigger;      /* captions pass caption_add_trigger */
    const char *trigger;
    bool flip_x, flip_y;
};

struct dataset_sources {
    struct dataset_source *source;
    size_t n;
    const char **notes;
    size_t n_notes;
};

/* ---- descriptions: dataset_musubi.c, dataset_toolkit.c, dataset_options.c ---- */

int dataset_read_config(const struct dataset_options *o, struct arena *a, struct dataset_sources *out,
                        struct cairn_error *err);
/* The same for nodes that were read; `path` is for messages and relative paths. */
int dataset_read_musubi(const char *path, const struct yaml_node *root, const struct dataset_options *o,
                        struct arena *a, struct dataset_sources *out, struct cairn_error *err);
int dataset_read_toolkit(const char *path, const struct yaml_node *root, const struct dataset_options *o,
                         struct arena *a, struct dataset_sources *out, struct cairn_error *err);
int dataset_read_folders(const struct dataset_options *o, struct arena *a, struct dataset_sources *out,
                         struct cairn_error *err);
/* Their keys.  Those of musubi-tuner have bits for the maps that may have them. */
enum { DATASET_MUSUBI_GENERAL = 1, DATASET_MUSUBI_IMAGE = 2, DATASET_MUSUBI_VIDEO = 4 };
extern const struct setting dataset_musubi_keys[], dataset_toolkit_keys[];
extern const size_t n_dataset_musubi_keys, n_dataset_toolkit_keys;
/* The place of a key of a map, with its name. */
const char *dataset_place(const char *path, const struct yaml_node *map, const char *key, struct arena *a);
/* Sorts, rounds down to 4n+1 and removes what is double. */
const size_t *dataset_frame_counts(const size_t *frames, size_t *n, struct arena *a);
/* The path itself; below `folder` (NULL: none) if it is relative and exists there; beside the file that names it if it
 * exists only there. */
const char *dataset_resolve(const char *path, const char *named_in, const char *folder, struct arena *a);
void dataset_note(struct dataset_sources *s, struct arena *a, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* ---- files: dataset_files.c ---- */

struct dataset_file {
    const char *path, *stem;
    bool is_listed;      /* named by a list, which has its caption */
    const char *caption; /* from the list; NULL: none */
    const char *control; /* from a list; NULL: by control_folder */
    bool is_clip;        /* by its name, or because it is a folder of frames */
    struct media_info media;
    const char *broken; /* why it could not be read; NULL: it could */
    uint64_t size;
    const char *same_as; /* an earlier file with the same bytes; NULL: none */
};

int dataset_list_files(const struct dataset_source *s, struct arena *a, struct dataset_file **files,
                       size_t *n, struct cairn_error *err);
/* The file in the folder with this stem, and `name` first; NULL: none. */
const char *dataset_find_partner(const char *folder, const char *name, const char *stem, bool clips,
                                 struct arena *a);

/* ---- frames: dataset_frames.c ---- */

struct dataset_piece {
    size_t start, n;
    const size_t *frames;
};
/* The pieces of a clip, all in the arena.  0 pieces: it is too short; *needed is then the least number of
 * frames that would do. */
size_t dataset_cut(const struct dataset_source *s, const struct media_info *m, struct arena *a,
                   struct dataset_piece **pieces, size_t *needed);

#endif
