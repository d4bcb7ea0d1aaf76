/* SPDX-License-Identifier: Apache-2.0
 * One case a line of knowledge: on this machine, with this PyTorch and these variables, the plan says so. */
#include "planning.h"

#include "base/str.h"
#include "check.h"

#define RX6750 "sysfs-synthetic/gfx1031-gfx1036-rx6750xt-plus-igpu"
#define RX6600 "sysfs/gfx1032-gfx1036-rx6600-plus-raphael-igpu"
#define HALO "sysfs/gfx1151-strixhalo-aurora-112g-gtt"
#define TINYBOX "sysfs/gfx1100-rx7900xtx-tinybox"
#define MI210 "sysfs/gfx90a-mi210-8gpu-2hives"
#define MI300 "sysfs/gfx942-mi300x-cpx-partitions"
#define DECK "sysfs/gfx1033-vangogh-steamdeck"
#define MI100 "sysfs/gfx908-mi100"

struct plan_case {
    const char *title, *capture;
    const char *gfx;     /* told by hand */
    const char *torch;   /* version; NULL: none */
    const char *targets; /* NULL: pytorch.org's */
    const char *file;    /* of tests/data/env */
    const char *env[6];
    const char *kernel, *aotriton, *trainer, *keep, *with;
    int gpu;            /* 0: not asked for; else the index plus 1 */
    size_t cards;       /* this many like the first one; 0: as captured */
    enum gpu_kind kind; /* of the first one; 0: as captured */
    int64_t vram_gib;   /* the same */
    bool debug, windows, therock;
    /* "set NAME=value", "noset NAME", "unset NAME: part of why", "keep NAME: part", "warn: part", "nowarn: part",
     * "gpu 0" */
    const char *want[14];
};

/* clang-format off */
static const struct plan_case cases[] = {
    /* Devices. */
    { "a supported card with a matching wheel needs nothing", MI100, .torch = "2.9.1+rocm6.4",
      .want = { "gpu 0", "nothing" } },
    { "the integrated GPU is hidden", RX6600, .torch = "2.9.1+rocm6.4",
      .want = { "gpu 0", "set ROCR_VISIBLE_DEVICES=0", "set HSA_OVERRIDE_GFX_VERSION=10.3.0", "warn: bf16" } },
    { "Windows has only HIP's variable", RX6600, .torch = "2.9.1+rocm6.4", .windows = true,
      .want = { "set HIP_VISIBLE_DEVICES=0", "noset ROCR_VISIBLE_DEVICES", "noset HSA_OVERRIDE_GFX_VERSION",
                "warn: another order", "warn: no code for GPU 0 (gfx1032)" } },
    { "--gpu picks, even the integrated one", RX6600, .torch = "2.9.1+rocm6.4", .gpu = 2,
      .want = { "gpu 1", "set ROCR_VISIBLE_DEVICES=1", "set HSA_OVERRIDE_GFX_VERSION=10.3.0" } },
    { "--gpu names the only GPU", MI100, .torch = "2.9.1+rocm6.4", .gpu = 1,
      .want = { "gpu 0", "set ROCR_VISIBLE_DEVICES=0" } },
    { "--gpu outranks a variable", RX6600, .env = { "HIP_VISIBLE_DEVICES=1" }, .gpu = 1,
      .want = { "gpu 0", "set ROCR_VISIBLE_DEVICES=0", "unset HIP_VISIBLE_DEVICES: --gpu 0" } },
    { "a variable that says what --gpu says stays", RX6600, .env = { "HIP_VISIBLE_DEVICES=1" }, .gpu = 2,
      .want = { "gpu 1", "noset ROCR_VISIBLE_DEVICES", "keep HIP_VISIBLE_DEVICES: your choice" } },
    { "several equal cards all stay", MI210, .torch = "2.9.1+rocm6.4", .want = { "gpu 0", "nothing" } },
    { "the partitions of a card all stay", MI300, .torch = "2.9.1+rocm6.4", .want = { "nothing" } },
    { "several cards without XGMI", TINYBOX, .torch = "2.10.0+rocm7.0", .cards = 4,
      .want = { "set HSA_FORCE_FINE_GRAIN_PCIE=1", "noset ROCR_VISIBLE_DEVICES" } },
    { "one of two integrated GPUs", HALO, .torch = "2.10.0+rocm7.0", .cards = 2,
      .want = { "gpu 0", "set ROCR_VISIBLE_DEVICES=0" } },
    { "the sockets of a board of MI300A", NULL, "gfx942", .torch = "2.9.1+rocm6.4", .cards = 4, .kind = GPU_INTEGRATED,
      .want = { "gpu 0", "noset ROCR_VISIBLE_DEVICES", "nowarn: crash" } },
    { "RDNA3 lacks instructions of RDNA3.5", TINYBOX, .torch = "2.9.1+rocm7.10.0", .therock = true,
      .targets = "gfx1150 gfx1151", .gpu = 1,
      .want = { "noset HSA_OVERRIDE_GFX_VERSION", "warn: no code for GPU 0 (gfx1100)" } },
    { "and a user's override to it is refused", TINYBOX, .torch = "2.9.1+rocm7.10.0", .therock = true,
      .targets = "gfx1150 gfx1151", .gpu = 1, .env = { "HSA_OVERRIDE_GFX_VERSION=11.5.1" },
      .want = { "unset HSA_OVERRIDE_GFX_VERSION: similar" } },
    { "one of several cards", TINYBOX, .torch = "2.10.0+rocm7.0", .cards = 4, .gpu = 3,
      .want = { "gpu 2", "set ROCR_VISIBLE_DEVICES=2", "noset HSA_FORCE_FINE_GRAIN_PCIE" } },
    { "the user's valid choice is kept", RX6600, .env = { "ROCR_VISIBLE_DEVICES=1" },
      .want = { "gpu 1", "keep ROCR_VISIBLE_DEVICES: your choice", "warn: the discrete GPU 0" } },
    { "both GPUs by the user's choice", RX6600, .env = { "ROCR_VISIBLE_DEVICES=0, 1" },
      .want = { "gpu 0", "keep ROCR_VISIBLE_DEVICES: your choice", "warn: leaves the integrated" } },
    { "HIP takes no spaces", RX6600, .env = { "HIP_VISIBLE_DEVICES=0, 1" },
      .want = { "gpu 0", "unset HIP_VISIBLE_DEVICES: space", "set ROCR_VISIBLE_DEVICES=0" } },
    { "what a mistake meant is honoured", MI210, .env = { "HIP_VISIBLE_DEVICES=2, 3" },
      .want = { "gpu 2", "unset HIP_VISIBLE_DEVICES: space", "set ROCR_VISIBLE_DEVICES=2,3" } },
    { "a name that torch has left behind", MI100, .torch = "2.9.1+rocm6.4", .env = { "DISABLE_ADDMM_HIP_LT=1" },
      .want = { "unset DISABLE_ADDMM_HIP_LT: DISABLE_ADDMM_CUDA_LT" } },
    { "and an older one reads", MI100, .torch = "2.4.1+rocm6.1", .env = { "DISABLE_ADDMM_HIP_LT=1" },
      .want = { "keep DISABLE_ADDMM_HIP_LT: no hipBLASLt for addmm" } },
    { "bf16 that the chip has not", RX6600, .env = { "ACCELERATE_MIXED_PRECISION=bf16" },
      .want = { "keep ACCELERATE_MIXED_PRECISION: the precision of training", "warn: gfx1032 has no bf16 arithmetic: use fp16" } },
    { "bf16 that it has", HALO, .env = { "ACCELERATE_MIXED_PRECISION=bf16" },
      .want = { "keep ACCELERATE_MIXED_PRECISION: the precision of training", "nowarn: no bf16 arithmetic" } },
    { "an empty list", MI100, .env = { "HIP_VISIBLE_DEVICES=" },
      .want = { "gpu 0", "unset HIP_VISIBLE_DEVICES: hides every GPU", "noset ROCR_VISIBLE_DEVICES" } },
    { "an empty list of the runtime", RX6600, .env = { "ROCR_VISIBLE_DEVICES= " },
      .want = { "unset ROCR_VISIBLE_DEVICES: hides every GPU", "set ROCR_VISIBLE_DEVICES=0" } },
    { "an index that does not exist", MI100, .env = { "CUDA_VISIBLE_DEVICES=1" },
      .want = { "gpu 0", "unset CUDA_VISIBLE_DEVICES: no GPU 1" } },
    { "an index that does not exist behind one that does", MI210, .env = { "ROCR_VISIBLE_DEVICES=3,9" },
      .want = { "gpu 3", "unset ROCR_VISIBLE_DEVICES: no GPU 9", "set ROCR_VISIBLE_DEVICES=3" } },
    { "a minus hides all", MI210, .env = { "CUDA_VISIBLE_DEVICES=-1" },
      .want = { "unset CUDA_VISIBLE_DEVICES: neither an index", "noset ROCR_VISIBLE_DEVICES" } },
    { "an index named twice", MI210, .env = { "HIP_VISIBLE_DEVICES=1,1" },
      .want = { "unset HIP_VISIBLE_DEVICES: twice", "set ROCR_VISIBLE_DEVICES=1" } },
    { "both names with the same list", RX6600, .env = { "HIP_VISIBLE_DEVICES=0", "CUDA_VISIBLE_DEVICES=0" },
      .want = { "keep HIP_VISIBLE_DEVICES: your choice", "keep CUDA_VISIBLE_DEVICES: redundant" } },
    { "both names with the same mistake", RX6600, .env = { "HIP_VISIBLE_DEVICES=5", "CUDA_VISIBLE_DEVICES=5" },
      .want = { "unset HIP_VISIBLE_DEVICES: no GPU 5", "unset CUDA_VISIBLE_DEVICES: there is no GPU 5" } },
    { "both names with different lists", RX6600, .env = { "HIP_VISIBLE_DEVICES=0", "CUDA_VISIBLE_DEVICES=1" },
      .want = { "gpu 0", "keep HIP_VISIBLE_DEVICES: your choice", "unset CUDA_VISIBLE_DEVICES: contradicts" } },
    { "an index within a reduced list", RX6600, .env = { "ROCR_VISIBLE_DEVICES=1", "HIP_VISIBLE_DEVICES=1" },
      .want = { "gpu 1", "unset HIP_VISIBLE_DEVICES: no GPU 1", "keep ROCR_VISIBLE_DEVICES: your choice" } },
    { "two filters become one", MI210, .env = { "ROCR_VISIBLE_DEVICES=4,5", "HIP_VISIBLE_DEVICES=1" },
      .want = { "gpu 5", "unset HIP_VISIBLE_DEVICES: count within", "unset ROCR_VISIBLE_DEVICES: narrows",
                "set ROCR_VISIBLE_DEVICES=5" } },
    { "--keep keeps a harmful one", MI100, .env = { "HIP_VISIBLE_DEVICES=" }, .keep = "HIP_VISIBLE_DEVICES",
      .want = { "keep HIP_VISIBLE_DEVICES: hides every GPU", "warn: stays because of --keep" } },
    { "--with is added", MI100, .with = "MIOPEN_FIND_MODE=FAST", .want = { "set MIOPEN_FIND_MODE=FAST" } },
    { "--with that contradicts is said", RX6600, .with = "HIP_VISIBLE_DEVICES=7",
      .want = { "set HIP_VISIBLE_DEVICES=7", "warn: stays because of --with" } },
    { "--with stands for the user's own", RX6600, .with = "ROCR_VISIBLE_DEVICES=1", .env = { "ROCR_VISIBLE_DEVICES=7" },
      .want = { "gpu 1", "set ROCR_VISIBLE_DEVICES=1", "nowarn: stays" } },

    /* Overrides. */
    { "a card that pytorch.org leaves out", RX6750, .torch = "2.9.1+rocm6.4",
      .want = { "set HSA_OVERRIDE_GFX_VERSION=10.3.0", "set ROCR_VISIBLE_DEVICES=0" } },
    { "a wheel with the card in it", RX6750, .torch = "2.9.1+rocm7.2", .targets = "gfx1030 gfx1031", .therock = true,
      .want = { "noset HSA_OVERRIDE_GFX_VERSION" } },
    { "a wheel with the generic target in it", RX6750, .torch = "2.9.1+rocm7.2", .targets = "gfx10-3-generic",
      .want = { "noset HSA_OVERRIDE_GFX_VERSION" } },
    { "without a PyTorch nothing is decided", RX6750,
      .want = { "noset HSA_OVERRIDE_GFX_VERSION", "warn: HSA_OVERRIDE_GFX_VERSION=10.3.0 is needed",
                "warn: no PyTorch was found" } },
    { "a malformed override is replaced", RX6750, .torch = "2.9.1+rocm6.4", .env = { "HSA_OVERRIDE_GFX_VERSION=gfx1031" },
      .want = { "unset HSA_OVERRIDE_GFX_VERSION: malformed", "set HSA_OVERRIDE_GFX_VERSION=10.3.0" } },
    { "two numbers are malformed", RX6750, .env = { "HSA_OVERRIDE_GFX_VERSION=10.3" },
      .want = { "unset HSA_OVERRIDE_GFX_VERSION: malformed" } },
    { "a space at the end is malformed", RX6750, .env = { "HSA_OVERRIDE_GFX_VERSION=10.3.0 " },
      .want = { "unset HSA_OVERRIDE_GFX_VERSION: malformed" } },
    { "nothing is malformed", RX6750, .env = { "HSA_OVERRIDE_GFX_VERSION=" },
      .want = { "unset HSA_OVERRIDE_GFX_VERSION: malformed" } },
    { "malformed is malformed without a GPU", NULL, .env = { "HSA_OVERRIDE_GFX_VERSION=10.3.0a" },
      .want = { "unset HSA_OVERRIDE_GFX_VERSION: malformed", "warn: no AMD GPU" } },
    { "a version that no chip has", RX6750, .env = { "HSA_OVERRIDE_GFX_VERSION=10.9.9" },
      .want = { "unset HSA_OVERRIDE_GFX_VERSION: no chip" } },
    { "the real version changes nothing", RX6750, .torch = "2.9.1+rocm6.4",
      .env = { "HSA_OVERRIDE_GFX_VERSION=10.3.1" },
      .want = { "unset HSA_OVERRIDE_GFX_VERSION: real version", "set HSA_OVERRIDE_GFX_VERSION=10.3.0" } },
    { "a right override is kept", RX6750, .torch = "2.9.1+rocm6.4", .env = { "HSA_OVERRIDE_GFX_VERSION=10.3.0" },
      .want = { "keep HSA_OVERRIDE_GFX_VERSION: has no code for", "noset HSA_OVERRIDE_GFX_VERSION" } },
    { "an override for a native wheel", HALO, .torch = "2.10.0+rocm7.0", .env = { "HSA_OVERRIDE_GFX_VERSION=11.0.0" },
      .want = { "unset HSA_OVERRIDE_GFX_VERSION: replaces" } },
    { "an override for a wheel of this chip only", HALO, .torch = "2.9.1+rocm7.2", .targets = "gfx1151",
      .env = { "HSA_OVERRIDE_GFX_VERSION=11.0.0" },
      .want = { "unset HSA_OVERRIDE_GFX_VERSION: every kernel lookup would fail" } },
    { "an old wheel without this chip", HALO, .torch = "2.8.0+rocm6.4", .want = { "set HSA_OVERRIDE_GFX_VERSION=11.0.0" } },
    { "an override to a target without code", RX6750, .torch = "2.9.1+rocm6.4", .targets = "gfx1030",
      .env = { "HSA_OVERRIDE_GFX_VERSION=10.3.2" },
      .want = { "unset HSA_OVERRIDE_GFX_VERSION: no code for gfx1032", "set HSA_OVERRIDE_GFX_VERSION=10.3.0" } },
    { "another generation", "sysfs/gfx90a-mi210-8gpu-2hives", .env = { "HSA_OVERRIDE_GFX_VERSION=10.3.0" },
      .want = { "unset HSA_OVERRIDE_GFX_VERSION: another generation" } },
    { "fewer registers than the code needs", "sysfs/gfx1103-phoenix-780m-laptop", .torch = "2.9.1+rocm6.4",
      .env = { "HSA_OVERRIDE_GFX_VERSION=11.0.0" },
      .want = { "unset HSA_OVERRIDE_GFX_VERSION: registers", "set HSA_OVERRIDE_GFX_VERSION=11.0.2" } },
    { "the nearest relative of a small chip", NULL, "gfx1152", .torch = "2.10.0+rocm7.0",
      .want = { "set HSA_OVERRIDE_GFX_VERSION=11.5.0" } },
    { "no relative is small enough", NULL, "gfx1102", .torch = "2.6.0+rocm6.2",
      .want = { "noset HSA_OVERRIDE_GFX_VERSION", "warn: pytorch.org wheels (since 2.7)" } },
    { "an integrated Vega", NULL, "gfx90c", .torch = "2.9.1+rocm6.4", .want = { "set HSA_OVERRIDE_GFX_VERSION=9.0.0" } },
    { "no override across instruction sets", NULL, "gfx1010", .torch = "2.9.1+rocm6.4", .targets = "gfx1011 gfx1012",
      .want = { "noset HSA_OVERRIDE_GFX_VERSION", "warn: TheRock" } },
    { "no override across formats of fp8", NULL, "gfx950", .torch = "2.9.1+rocm6.4",
      .want = { "noset HSA_OVERRIDE_GFX_VERSION", "warn: pytorch.org wheels" } },
    { "none helps this chip", NULL, "gfx803", .torch = "2.9.1+rocm6.4",
      .want = { "noset HSA_OVERRIDE_GFX_VERSION", "warn: no known wheel" } },
    { "the right chip beside one that stays visible", RX6750, .torch = "2.9.1+rocm7.2", .targets = "gfx1036 gfx1030",
      .env = { "ROCR_VISIBLE_DEVICES=0,1" },
      .want = { "set HSA_OVERRIDE_GFX_VERSION_1=10.3.0", "noset HSA_OVERRIDE_GFX_VERSION" } },
    { "which ROCm can do from 6.3 on", RX6750, .torch = "2.5.1+rocm6.2", .targets = "gfx1036 gfx1030",
      .env = { "ROCR_VISIBLE_DEVICES=0,1" },
      .want = { "noset HSA_OVERRIDE_GFX_VERSION_1", "noset HSA_OVERRIDE_GFX_VERSION", "warn: from 6.3" } },
    { "node 0 is the CPU", RX6750, .torch = "2.9.1+rocm6.4", .env = { "HSA_OVERRIDE_GFX_VERSION_0=10.3.0" },
      .want = { "unset HSA_OVERRIDE_GFX_VERSION_0: KFD node 0", "set HSA_OVERRIDE_GFX_VERSION=10.3.0" } },
    { "a node that is hidden", RX6750, .torch = "2.9.1+rocm6.4", .env = { "HSA_OVERRIDE_GFX_VERSION_2=10.3.0" },
      .want = { "unset HSA_OVERRIDE_GFX_VERSION_2: hidden" } },
    { "a right override of one node", RX6750, .torch = "2.9.1+rocm6.4", .env = { "HSA_OVERRIDE_GFX_VERSION_1=10.3.0" },
      .want = { "keep HSA_OVERRIDE_GFX_VERSION_1: has no code for", "noset HSA_OVERRIDE_GFX_VERSION" } },
    { "without a PyTorch an override of a native chip is old", HALO, .env = { "HSA_OVERRIDE_GFX_VERSION=11.0.0" },
      .want = { "unset HSA_OVERRIDE_GFX_VERSION: obsolete" } },
    { "without a PyTorch a wrong override is replaced by the usual one", RX6750,
      .env = { "HSA_OVERRIDE_GFX_VERSION=gfx1031" },
      .want = { "unset HSA_OVERRIDE_GFX_VERSION: malformed", "set HSA_OVERRIDE_GFX_VERSION=10.3.0",
                "nowarn: is needed" } },
    { "without a PyTorch a usual override is kept", RX6750, .env = { "HSA_OVERRIDE_GFX_VERSION=10.3.0" },
      .want = { "keep HSA_OVERRIDE_GFX_VERSION: your override" } },

    /* Shared memory and the allocator. */
    { "shared memory before 2.12", HALO, .torch = "2.11.0+rocm7.2",
      .want = { "set PYTORCH_HIP_ALLOC_CONF=garbage_collection_threshold:0.8", "noset PYTORCH_ALLOC_CONF",
                "warn: leave 16.0 GiB to the system" } },
    { "a large carve-out is not shared", HALO, .torch = "2.11.0+rocm7.2", .vram_gib = 120,
      .want = { "set PYTORCH_HIP_ALLOC_CONF=garbage_collection_threshold:0.8", "nowarn: to the system" } },
    { "shared memory from 2.12", HALO, .torch = "2.12.0+rocm7.2", .kernel = "6.18.4",
      .want = { "set PYTORCH_ALLOC_CONF=garbage_collection_threshold:0.8,expandable_segments:True",
                "noset PYTORCH_HIP_ALLOC_CONF" } },
    { "expandable segments hang on an old kernel", HALO, .torch = "2.12.0+rocm7.14", .kernel = "6.12.1",
      .want = { "set PYTORCH_ALLOC_CONF=garbage_collection_threshold:0.8" } },
    { "expandable segments need ROCm 7", HALO, .torch = "2.12.0+rocm6.4",
      .want = { "set PYTORCH_ALLOC_CONF=garbage_collection_threshold:0.8" } },
    { "a discrete card keeps torch's default", MI100, .torch = "2.12.0+rocm7.2",
      .want = { "noset PYTORCH_ALLOC_CONF", "nowarn: share memory" } },
    { "the user's options win", HALO, .torch = "2.12.0+rocm7.2", .env = { "PYTORCH_ALLOC_CONF=max_split_size_mb:256" },
      .want = { "keep PYTORCH_ALLOC_CONF: your options", "noset PYTORCH_ALLOC_CONF" } },
    { "a name that torch 2.7 does not read", MI100, .torch = "2.7.1+rocm6.3",
      .env = { "PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:256" },
      .want = { "unset PYTORCH_CUDA_ALLOC_CONF: does not read", "set PYTORCH_HIP_ALLOC_CONF=max_split_size_mb:256" } },
    { "a name that torch 2.10 announces", MI100, .torch = "2.10.0+rocm7.0",
      .env = { "PYTORCH_ALLOC_CONF=max_split_size_mb:256" },
      .want = { "unset PYTORCH_ALLOC_CONF: does not read", "set PYTORCH_HIP_ALLOC_CONF=max_split_size_mb:256" } },
    { "the CUDA name wins from 2.8 on", MI100, .torch = "2.8.0+rocm6.4",
      .env = { "PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:256", "PYTORCH_HIP_ALLOC_CONF=max_split_size_mb:128" },
      .want = { "keep PYTORCH_CUDA_ALLOC_CONF: your options", "unset PYTORCH_HIP_ALLOC_CONF: differs" } },
    { "aliases are fine from 2.12 on", MI100, .torch = "2.12.0+rocm7.2",
      .env = { "PYTORCH_HIP_ALLOC_CONF=max_split_size_mb:256" }, .want = { "keep PYTORCH_HIP_ALLOC_CONF: your options" } },
    { "several names, no PyTorch", MI100,
      .env = { "PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:256", "PYTORCH_HIP_ALLOC_CONF=max_split_size_mb:128" },
      .want = { "keep PYTORCH_HIP_ALLOC_CONF: your options", "unset PYTORCH_CUDA_ALLOC_CONF: differs" } },
    { "expandable segments that are ignored", MI100, .torch = "2.9.1+rocm6.4",
      .env = { "PYTORCH_HIP_ALLOC_CONF=expandable_segments:True" },
      .want = { "keep PYTORCH_HIP_ALLOC_CONF: ignores expandable_segments" } },
    { "AMD's own 2.11 has them", MI100, .torch = "2.11.0+rocm7.2", .therock = true,
      .env = { "PYTORCH_HIP_ALLOC_CONF=expandable_segments:True" },
      .want = { "keep PYTORCH_HIP_ALLOC_CONF: active here" } },
    { "the user's segments that would hang", MI100, .torch = "2.12.0+rocm7.14", .kernel = "6.12.1",
      .env = { "PYTORCH_ALLOC_CONF=expandable_segments:True,max_split_size_mb:128" },
      .want = { "unset PYTORCH_ALLOC_CONF: hangs", "set PYTORCH_ALLOC_CONF=max_split_size_mb:128" } },
    { "a split size that torch refuses", MI100, .torch = "2.9.1+rocm6.4",
      .env = { "PYTORCH_HIP_ALLOC_CONF=max_split_size_mb:16,roundup_power2_divisions:[256:1,512:2,>:8]" },
      .want = { "unset PYTORCH_HIP_ALLOC_CONF: above 20",
                "set PYTORCH_HIP_ALLOC_CONF=roundup_power2_divisions:[256:1,512:2,>:8]" } },
    { "a backend that torch refuses", HALO, .torch = "2.9.1+rocm7.0", .env = { "PYTORCH_HIP_ALLOC_CONF=backend:malloc" },
      .want = { "unset PYTORCH_HIP_ALLOC_CONF: backend:malloc",
                "set PYTORCH_HIP_ALLOC_CONF=garbage_collection_threshold:0.8" } },
    { "an empty text", HALO, .torch = "2.10.0+rocm7.0",
      .env = { "PYTORCH_CUDA_ALLOC_CONF=", "PYTORCH_HIP_ALLOC_CONF=max_split_size_mb:256" },
      .want = { "unset PYTORCH_CUDA_ALLOC_CONF: empty", "keep PYTORCH_HIP_ALLOC_CONF: your options" } },
    { "no colon", MI100, .torch = "2.9.1+rocm6.4", .env = { "PYTORCH_HIP_ALLOC_CONF=expandable_segments" },
      .want = { "unset PYTORCH_HIP_ALLOC_CONF: not option:value", "noset PYTORCH_HIP_ALLOC_CONF" } },
    { "caching off", HALO, .torch = "2.9.1+rocm7.0", .env = { "PYTORCH_NO_HIP_MEMORY_CACHING=1" },
      .want = { "unset PYTORCH_NO_HIP_MEMORY_CACHING: caching allocator" } },
    { "caching off by 0 in torch 2.6", MI100, .torch = "2.6.0+rocm6.2", .env = { "PYTORCH_NO_CUDA_MEMORY_CACHING=0" },
      .want = { "unset PYTORCH_NO_CUDA_MEMORY_CACHING: even 0" } },
    { "0 counts no more", MI100, .torch = "2.7.0+rocm6.3", .env = { "PYTORCH_NO_CUDA_MEMORY_CACHING=0" },
      .want = { "keep PYTORCH_NO_CUDA_MEMORY_CACHING: no effect" } },
    { "the CUDA spelling in 2.5", MI100, .torch = "2.5.1+rocm6.2", .env = { "PYTORCH_NO_CUDA_MEMORY_CACHING=1" },
      .want = { "keep PYTORCH_NO_CUDA_MEMORY_CACHING: not read" } },
    { "caching off stays when debugging", MI100, .torch = "2.9.1+rocm6.4", .debug = true,
      .env = { "PYTORCH_NO_HIP_MEMORY_CACHING=1" },
      .want = { "keep PYTORCH_NO_HIP_MEMORY_CACHING: debugging", "set AMD_SERIALIZE_KERNEL=3" } },

    /* Attention and matrix products. */
    { "fused attention that is off", HALO, .torch = "2.10.0+rocm7.0",
      .want = { "set TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL=1" } },
    { "fused attention that is on by default", HALO, .torch = "2.12.0+rocm7.2", .aotriton = "0.13.0",
      .want = { "noset TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL" } },
    { "fused attention that stays experimental", NULL, "gfx1150", .torch = "2.12.0+rocm7.2", .aotriton = "0.13b",
      .want = { "set TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL=1" } },
    { "gfx1100 with torch 2.5", TINYBOX, .torch = "2.5.1+rocm6.2", .gpu = 1,
      .want = { "set TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL=1", "noset TORCH_BLAS_PREFER_HIPBLASLT" } },
    { "gfx1100 with torch 2.8", TINYBOX, .torch = "2.8.0+rocm6.4", .gpu = 1,
      .want = { "noset TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL", "set TORCH_BLAS_PREFER_HIPBLASLT=1" } },
    { "gfx1100 with torch 2.9", TINYBOX, .torch = "2.9.1+rocm6.4", .gpu = 1,
      .want = { "noset TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL", "set TORCH_BLAS_PREFER_HIPBLASLT=1",
                "warn: lose accuracy" } },
    { "gfx1100 with torch 2.10", TINYBOX, .torch = "2.10.0+rocm7.0", .gpu = 1,
      .want = { "noset TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL", "noset TORCH_BLAS_PREFER_HIPBLASLT" } },
    { "RDNA4, first and second card", NULL, "gfx1200", .torch = "2.12.0+rocm7.2",
      .want = { "set TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL=1" } },
    { "a flag that changes nothing", RX6750, .torch = "2.9.1+rocm6.4",
      .env = { "TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL=1" },
      .want = { "keep TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL: no effect" } },
    { "a flag switched off", HALO, .torch = "2.10.0+rocm7.0", .env = { "TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL=0" },
      .want = { "keep TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL: math path",
                "noset TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL" } },
    { "a word where a digit is read", HALO, .torch = "2.10.0+rocm7.0",
      .env = { "TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL=true" },
      .want = { "unset TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL: only 0 and 1",
                "set TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL=1" } },
    { "the exact word TRUE", MI100, .env = { "FLASH_ATTENTION_TRITON_AMD_ENABLE=1" },
      .want = { "unset FLASH_ATTENTION_TRITON_AMD_ENABLE: TRUE", "set FLASH_ATTENTION_TRITON_AMD_ENABLE=TRUE" } },
    { "hipBLASLt on a chip that it does not know", RX6750, .torch = "2.9.1+rocm6.4", .env = { "ROCBLAS_USE_HIPBLASLT=1" },
      .want = { "unset ROCBLAS_USE_HIPBLASLT: aborts" } },
    { "hipBLASLt on gfx1151", HALO, .torch = "2.10.0+rocm7.0", .env = { "ROCBLAS_USE_HIPBLASLT=1" },
      .want = { "keep ROCBLAS_USE_HIPBLASLT: 3.7 times" } },

    /* Debugging and the rest. */
    { "debugging", MI100, .torch = "2.9.1+rocm6.4", .debug = true,
      .want = { "set AMD_SERIALIZE_KERNEL=3", "set AMD_SERIALIZE_COPY=3", "set AMD_LOG_LEVEL=1",
                "set HSAKMT_DEBUG_LEVEL=3" } },
    { "debugging on Windows", MI100, .torch = "2.9.1+rocm6.4", .debug = true, .windows = true,
      .want = { "set AMD_SERIALIZE_KERNEL=3", "noset HSAKMT_DEBUG_LEVEL" } },
    { "left over from debugging", MI100, .env = { "AMD_SERIALIZE_KERNEL=3", "HIP_LAUNCH_BLOCKING=1", "AMD_SERIALIZE_COPY=1" },
      .want = { "unset AMD_SERIALIZE_KERNEL: every kernel", "unset HIP_LAUNCH_BLOCKING: every kernel",
                "unset AMD_SERIALIZE_COPY: every copy" } },
    { "debugging by the user's own values", MI100, .debug = true, .env = { "AMD_SERIALIZE_KERNEL=1", "HIP_LAUNCH_BLOCKING=0" },
      .want = { "keep AMD_SERIALIZE_KERNEL: debugging", "noset AMD_SERIALIZE_KERNEL",
                "unset HIP_LAUNCH_BLOCKING: contradicts --debug" } },
    { "page-fault retry on RDNA", RX6750, .env = { "HSA_XNACK=1" }, .want = { "unset HSA_XNACK: no page-fault retry" } },
    { "page-fault retry on CDNA", MI210, .env = { "HSA_XNACK=1" }, .want = { "keep HSA_XNACK: xnack+" } },
    { "names that nobody reads", MI100, .env = { "PYTORCH_MAX_SPLIT_SIZE_MB=512", "TORCH_USE_HIP_DSA=1",
                                                 "GPU_MAX_ALLOC_PERCENT=100" },
      .want = { "unset PYTORCH_MAX_SPLIT_SIZE_MB: nothing reads it", "unset TORCH_USE_HIP_DSA: nothing reads it",
                "unset GPU_MAX_ALLOC_PERCENT: nothing reads it" } },
    { "names for builds", MI100, .env = { "PYTORCH_ROCM_ARCH=gfx908" },
      .want = { "keep PYTORCH_ROCM_ARCH: prebuilt wheel" } },
    { "a second runtime", MI100, .torch = "2.9.1+rocm6.4", .env = { "LD_LIBRARY_PATH=/opt/rocm/lib:/usr/local/cool:" },
      .want = { "unset LD_LIBRARY_PATH: second HIP and HSA runtime", "set LD_LIBRARY_PATH=/usr/local/cool" } },
    { "no second runtime", MI100, .torch = "2.9.1+rocm6.4", .env = { "LD_LIBRARY_PATH=/usr/local/cool" },
      .want = { "keep LD_LIBRARY_PATH: no second" } },
    { "a runtime in LD_PRELOAD", MI100, .torch = "2.9.1+rocm6.4",
      .env = { "LD_PRELOAD=/opt/rocm/lib/libamdhip64.so.6 /usr/lib/libtcmalloc.so.4" },
      .want = { "unset LD_PRELOAD: libamdhip64", "set LD_PRELOAD=/usr/lib/libtcmalloc.so.4" } },
    { "a stale directory of kernels", MI100, .env = { "ROCBLAS_TENSILE_LIBPATH=/opt/rocm-5.4/lib/rocblas/library" },
      .want = { "unset ROCBLAS_TENSILE_LIBPATH: aborts" } },
    { "a mode that does not exist", MI100, .env = { "MIOPEN_FIND_MODE=QUICK" },
      .want = { "unset MIOPEN_FIND_MODE: valid" } },
    { "a typo", MI100, .env = { "HIP_VISIBLE_DEVICE=0" }, .want = { "warn: did you mean HIP_VISIBLE_DEVICES?" } },
    { "training on the CPU by accident", MI100, .env = { "ACCELERATE_USE_CPU=true" },
      .want = { "keep ACCELERATE_USE_CPU: trains on the CPU", "warn: on the CPU" } },
    { "a CUDA build", MI100, .torch = "2.9.1+cu128", .want = { "warn: a CUDA build", "noset PYTORCH_HIP_ALLOC_CONF" } },
    { "a CPU build", HALO, .torch = "2.9.1+cpu", .want = { "warn: a CPU build", "noset PYTORCH_HIP_ALLOC_CONF" } },
    { "no GPU", NULL, .torch = "2.9.1+rocm6.4", .debug = true, .want = { "gpu none", "nothing", "warn: no AMD GPU" } },
    { "a chip that is not in the table", NULL, "gfx1299", .torch = "2.9.1+rocm6.4", .want = { "warn: gfx1299 is not in" } },
    { "copies that hang", NULL, "gfx90c", .torch = "2.4.0+rocm6.0", .want = { "set HSA_ENABLE_SDMA=0" } },
    { "a trainer's advice", HALO, .torch = "2.10.0+rocm7.0", .trainer = "Musubi", .want = { "warn: --disable_numpy_memmap" } },
    { "a trainer that sets its own", MI100, .trainer = "simpletuner", .want = { "warn: PYTORCH_TUNABLEOP_ENABLED=1 itself" } },
    { "torch.compile that kills", HALO, .torch = "2.9.1+rocm7.0", .want = { "warn: torch.compile" } },

    /* What guides tell people to put into their shells, on the machines that they wrote it for. */
    { "a start script for gfx1151, today's wheel", HALO, .torch = "2.10.0+rocm7.0", .file = "halo-start-script.env",
      .want = { "keep ROCM_PATH: does not need it", "keep PYTORCH_ROCM_ARCH: prebuilt wheel",
                "unset HSA_OVERRIDE_GFX_VERSION: replaces", "keep ROCBLAS_USE_HIPBLASLT: weight gradients",
                "unset LD_LIBRARY_PATH: second HIP", "unset DEVICE_LIB_PATH: no such path",
                "unset HIP_DEVICE_LIB_PATH: no such path", "keep PATH: tools", "unset AMD_SERIALIZE_KERNEL: slow",
                "unset TORCH_USE_HIP_DSA: nothing reads it", "keep HIP_LAUNCH_BLOCKING: off",
                "keep HIP_VISIBLE_DEVICES: your choice", "set TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL=1",
                "set PYTORCH_HIP_ALLOC_CONF=garbage_collection_threshold:0.8" } },
    { "a start script for gfx1151, an old wheel", HALO, .torch = "2.8.0+rocm6.4", .file = "halo-start-script.env",
      .want = { "keep HSA_OVERRIDE_GFX_VERSION: has no code for", "unset AMD_SERIALIZE_KERNEL: slow" } },
    { "a start script for gfx1151, no wheel", HALO, .file = "halo-start-script.env",
      .want = { "unset HSA_OVERRIDE_GFX_VERSION: obsolete", "unset LD_LIBRARY_PATH: second HIP" } },
    { "a wrapper for the RX 6750 XT", RX6750, .torch = "2.9.1+rocm6.4", .file = "rx6750xt-wrapper.env",
      .want = { "gpu 0", "unset HSA_OVERRIDE_GFX_VERSION: malformed", "set HSA_OVERRIDE_GFX_VERSION=10.3.0",
                "keep HIP_VISIBLE_DEVICES: your choice", "keep CUDA_VISIBLE_DEVICES: redundant",
                "keep PYTORCH_HIP_ALLOC_CONF: ignores", "noset ROCR_VISIBLE_DEVICES" } },
    { "the RX 6750 XT by hand", RX6750, .torch = "2.9.1+rocm6.4", .file = "rx6750xt-by-hand.env",
      .want = { "unset HSA_OVERRIDE_GFX_VERSION: real version", "set HSA_OVERRIDE_GFX_VERSION=10.3.0",
                "keep HIP_VISIBLE_DEVICES: your choice" } },
    { "the RX 6750 XT, debugging left on", RX6750, .torch = "2.9.1+rocm6.4", .file = "rx6750xt-debugging.env",
      .want = { "unset AMD_SERIALIZE_KERNEL: every kernel", "unset HIP_LAUNCH_BLOCKING: every kernel" } },
    { "the RX 6750 XT, debugging asked for", RX6750, .torch = "2.9.1+rocm6.4", .file = "rx6750xt-debugging.env",
      .debug = true, .want = { "keep AMD_SERIALIZE_KERNEL: debugging", "keep HIP_LAUNCH_BLOCKING: debugging" } },
    { "gfx1151 on Windows", NULL, "gfx1151", .torch = "2.9.1+rocm7.2", .therock = true, .targets = "gfx1151",
      .windows = true, .file = "halo-windows.env",
      .want = { "unset HSA_OVERRIDE_GFX_VERSION: not read on Windows", "unset PYTORCH_MAX_SPLIT_SIZE_MB: max_split_size_mb",
                "keep TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL: right",
                "unset PYTORCH_NO_HIP_MEMORY_CACHING: caching allocator" } },
};
/* clang-format on */

/* "NAME: text" or "NAME=text" taken apart. */
static const char *split(struct planning *p, const char *want, const char *separator, const char **text)
{
    const char *at = strstr(want, separator);
    *text = at ? at + strlen(separator) : "";
    return arena_strndup(&p->arena, want, at ? (size_t)(at - want) : strlen(want));
}

static bool holds(struct planning *p, const char *want)
{
    const char *text, *name;
    if (str_eq(want, "nothing"))
        return !p->plan.n_set && !p->plan.n_unset;
    if (str_eq(want, "gpu none"))
        return !p->plan.gpu;
    if (str_starts(want, "gpu "))
        return p->plan.gpu && p->plan.gpu->hip_index == atoi(want + 4);
    if (str_starts(want, "warn: "))
        return planning_warns(p, want + 6);
    if (str_starts(want, "nowarn: "))
        return !planning_warns(p, want + 8);
    if (str_starts(want, "noset "))
        return !planning_set(p, want + 6);
    if (str_starts(want, "set ")) {
        name = split(p, want + 4, "=", &text);
        return str_eq(planning_set(p, name), text);
    }
    name = split(p, want + (str_starts(want, "unset ") ? 6 : 5), ": ", &text);
    const char *why = str_starts(want, "unset ") ? planning_unset(p, name) : planning_keep(p, name);
    return why && *text && strstr(why, text);
}

static void print_plan(const struct plan *p)
{
    for (size_t i = 0; i < p->n_set; i++)
        printf("#   set %s=%s: %s\n", p->set[i].name, p->set[i].value, p->set[i].why);
    for (size_t i = 0; i < p->n_unset; i++)
        printf("#   unset %s: %s\n", p->unset[i].name, p->unset[i].why);
    for (size_t i = 0; i < p->n_keep; i++)
        printf("#   keep %s: %s\n", p->keep[i].name, p->keep[i].why);
    for (size_t i = 0; i < p->warnings.n; i++)
        printf("#   warn: %s\n", p->warnings.text[i]);
}

static void multiply(struct planning *p, size_t cards)
{
    struct gpu_facts *gpus = ARENA_NEW(&p->arena, struct gpu_facts, cards);
    for (size_t i = 0; i < cards; i++) {
        gpus[i] = p->facts.gpus[0];
        gpus[i].hip_index = (int)i;
        gpus[i].kfd_node.v += (int64_t)i;
    }
    p->facts.gpus = gpus;
    p->facts.n_gpus = cards;
}

static bool set_up(struct planning *p, const struct plan_case *c)
{
    struct cairn_error err = { 0 };
    if (!planning_open(p, c->capture) || (c->gfx && facts_set_gfx(&p->facts, c->gfx, &err)))
        return false;
    if (c->kind)
        p->facts.gpus[0].kind = c->kind;
    if (c->vram_gib)
        p->facts.gpus[0].vram_total_bytes = (struct num){ c->vram_gib << 30, "test" };
    if (c->cards)
        multiply(p, c->cards);
    planning_torch(p, c->torch);
    p->torch.therock = c->therock;
    if (c->targets)
        planning_targets(p, c->targets);
    if (c->aotriton)
        p->torch.aotriton_version = (struct text){ c->aotriton, "test" };
    if (c->file && !planning_env_file(p, c->file))
        return false;
    for (size_t i = 0; i < 6 && c->env[i]; i++)
        planning_env(p, c->env[i]);
    if (c->kernel) {
        p->facts.host.kernel = (struct text){ c->kernel, "test" };
        version_parse(c->kernel, &p->facts.host.kernel_version);
    }
    return true;
}

static void run_case(const struct plan_case *c)
{
    struct planning p;
    struct cairn_error err = { 0 };
    const char *keep[] = { c->keep, NULL }, *with[] = { c->with, NULL };
    REQUIRE(set_up(&p, c));
    p.options = (struct plan_options){ .gpu = c->gpu - 1,
                                       .debug = c->debug,
                                       .windows = c->windows,
                                       .trainer = c->trainer,
                                       .keep = keep,
                                       .with = with };
    int r = planning_run(&p, &err), bad = check_bad_here;
    if (r)
        CHECK_FAIL_("%s: %s", c->title, err.msg);
    for (size_t i = 0; !r && i < 14 && c->want[i]; i++)
        if (!holds(&p, c->want[i]))
            CHECK_FAIL_("%s: want \"%s\"", c->title, c->want[i]);
    if (check_bad_here != bad)
        print_plan(&p.plan);
    planning_release(&p);
}

static void every_case(void)
{
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        run_case(&cases[i]);
    printf("# %zu cases\n", ARRAY_LEN(cases));
}

static void fails(struct plan_options o, const char *message, const char *hint)
{
    struct planning p;
    struct cairn_error err = { 0 };
    REQUIRE(planning_open(&p, RX6600));
    p.options = o;
    CHECK_INT(planning_run(&p, &err), -1);
    CHECK_INT(err.code, CAIRN_EUSAGE);
    CHECK_HAS(err.msg, message);
    CHECK_HAS(err.hint, hint);
    planning_release(&p);
}

static void wrong_usage_is_an_error(void)
{
    const char *without[] = { "NAME", NULL }, *odd[] = { "NA ME=1", NULL };
    fails((struct plan_options){ .gpu = 2 }, "no GPU 2", "");
    fails((struct plan_options){ .gpu = -1, .trainer = "musubi-tunr" }, "musubi-tunr", "musubi-tuner");
    fails((struct plan_options){ .gpu = -1, .with = without }, "NAME=VALUE", "");
    fails((struct plan_options){ .gpu = -1, .with = odd }, "variable name", "");
}

static void shows(const char *env, const char *want)
{
    struct planning p;
    const struct gpu_facts **shown;
    char got[64] = "";
    REQUIRE(planning_open(&p, MI210));
    if (env)
        planning_env(&p, env);
    size_t n = plan_shown(&p.facts, &p.arena, &shown);
    for (size_t i = 0; i < n; i++)
        snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s%d", i ? " " : "", shown[i]->hip_index);
    CHECK_STR(got, want);
    planning_release(&p);
}

/* The runtime's own rules: in the order of the list, up to the first mistake. */
static void what_the_runtime_shows(void)
{
    shows(NULL, "0 1 2 3 4 5 6 7");
    shows("ROCR_VISIBLE_DEVICES=3, 1", "3 1");
    shows("ROCR_VISIBLE_DEVICES=GPU-51276ac12ce05db3,0", "1 0");
    shows("ROCR_VISIBLE_DEVICES=2,9,1", "2");
    shows("ROCR_VISIBLE_DEVICES=", "");
    shows("HIP_VISIBLE_DEVICES=1", "0 1 2 3 4 5 6 7");
}

int main(void)
{
    RUN(every_case);
    RUN(what_the_runtime_shows);
    RUN(wrong_usage_is_an_error);
    return check_done();
}
