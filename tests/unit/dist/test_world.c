/* SPDX-License-Identifier: Apache-2.0 */
#include "dist/world.h"

#include "check.h"
#include <stdlib.h>

static const char *const variables[] = {
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_SIZE",
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "OMPI_COMM_WORLD_LOCAL_SIZE",
    "PMI_RANK",
    "PMI_SIZE",
    "MPI_LOCALRANKID",
    "MPI_LOCALNRANKS",
    "SLURM_STEP_ID",
    "SLURM_PROCID",
    "SLURM_STEP_NUM_TASKS",
    "SLURM_NTASKS",
    "SLURM_LOCALID",
    "RANK",
    "WORLD_SIZE",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
};

/* "NAME=VALUE NAME=VALUE"; all others are not set. */
static void set_environment(const char *words)
{
    char text[512], *rest = text;
    for (size_t i = 0; i < ARRAY_LEN(variables); i++)
        unsetenv(variables[i]);
    snprintf(text, sizeof(text), "%s", words);
    for (char *word; (word = strsep(&rest, " "));) {
        char *value = strchr(word, '=');
        if (value) {
            *value = '\0';
            setenv(word, value + 1, 1);
        }
    }
}

static void finds_the_rank_of_each_launcher(void)
{
    static const struct {
        const char *environment;
        enum launcher launcher;
        int rank, size, local_rank, local_size;
    } rows[] = {
        { "", LAUNCHER_NONE, 0, 1, 0, 1 },
        { "OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_RANK=1 "
          "OMPI_COMM_WORLD_LOCAL_SIZE=2",
          LAUNCHER_OPEN_MPI, 3, 4, 1, 2 },
        { "PMI_RANK=1 PMI_SIZE=2 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=2", LAUNCHER_MPICH, 1, 2, 1, 2 },
        { "PMI_RANK=1 PMI_SIZE=2", LAUNCHER_MPICH, 1, 2, 0, 0 },
        { "SLURM_STEP_ID=0 SLURM_PROCID=2 SLURM_STEP_NUM_TASKS=3 SLURM_NTASKS=9 SLURM_LOCALID=0",
          LAUNCHER_SLURM, 2, 3, 0, 0 },
        { "SLURM_STEP_ID=0 SLURM_PROCID=2 SLURM_NTASKS=9 SLURM_LOCALID=2", LAUNCHER_SLURM, 2, 9, 2, 0 },
        { "RANK=1 WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1", LAUNCHER_TORCHRUN, 1, 2, 0, 1 },
        /* A batch script is one process. */
        { "SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_LOCALID=0", LAUNCHER_NONE, 0, 1, 0, 1 },
        /* One rank is none. */
        { "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1", LAUNCHER_NONE, 0, 1, 0, 1 },
        { "RANK=0 WORLD_SIZE=1", LAUNCHER_NONE, 0, 1, 0, 1 },
        /* mpirun within a step of Slurm, which starts its daemons. */
        { "SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_NTASKS=2 OMPI_COMM_WORLD_RANK=5 OMPI_COMM_WORLD_SIZE=8",
          LAUNCHER_OPEN_MPI, 5, 8, 0, 0 },
        /* Set to nothing is not set. */
        { "OMPI_COMM_WORLD_RANK= OMPI_COMM_WORLD_SIZE= RANK=1 WORLD_SIZE=2", LAUNCHER_TORCHRUN, 1, 2, 0, 0 },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct world w;
        struct cairn_error err = { 0 };
        set_environment(rows[i].environment);
        if (world_find(&w, &err))
            CHECK_FAIL_("%s: %s", rows[i].environment, err.msg);
        else if (w.launcher != rows[i].launcher || w.rank != rows[i].rank || w.size != rows[i].size ||
                 w.local_rank != rows[i].local_rank || w.local_size != rows[i].local_size)
            CHECK_FAIL_("%s: %s, rank %d of %d, %d of %d here", rows[i].environment,
                        launcher_name(w.launcher), w.rank, w.size, w.local_rank, w.local_size);
    }
}

static void names_the_variable_that_cannot_be(void)
{
    static const struct {
        const char *environment, *words;
    } rows[] = {
        { "OMPI_COMM_WORLD_RANK=4 OMPI_COMM_WORLD_SIZE=4",
          "OMPI_COMM_WORLD_RANK is 4, but there are only 4" },
        { "OMPI_COMM_WORLD_RANK=-1 OMPI_COMM_WORLD_SIZE=4", "OMPI_COMM_WORLD_RANK is \"-1\"" },
        { "PMI_RANK=0 PMI_SIZE=two", "PMI_SIZE is \"two\"" },
        { "PMI_RANK=0 PMI_SIZE=0", "PMI_SIZE is \"0\"" },
        { "RANK=0 WORLD_SIZE=99999999999", "WORLD_SIZE is \"99999999999\"" },
        { "RANK=0 WORLD_SIZE=2 LOCAL_RANK=3 LOCAL_WORLD_SIZE=2", "LOCAL_RANK is 3" },
        { "RANK=0 WORLD_SIZE=2 LOCAL_WORLD_SIZE=3", "LOCAL_RANK is 0" },
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct world w;
        struct cairn_error err = { 0 };
        set_environment(rows[i].environment);
        CHECK(world_find(&w, &err) == -1 && err.code == CAIRN_EUSAGE && err.hint[0]);
        if (!strstr(err.msg, rows[i].words))
            CHECK_FAIL_("%s: %s", rows[i].environment, err.msg);
    }
}

static void says_who_has_mpi(void)
{
    CHECK(launcher_has_mpi(LAUNCHER_OPEN_MPI) && launcher_has_mpi(LAUNCHER_SLURM));
    CHECK(!launcher_has_mpi(LAUNCHER_TORCHRUN) && !launcher_has_mpi(LAUNCHER_NONE));
}

int main(void)
{
    RUN(finds_the_rank_of_each_launcher);
    RUN(names_the_variable_that_cannot_be);
    RUN(says_who_has_mpi);
    return check_done();
}
