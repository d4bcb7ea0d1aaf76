/* SPDX-License-Identifier: Apache-2.0
 * The commands; the list of them is in main.c. */
#ifndef CAIRN_CLI_COMMANDS_H
#define CAIRN_CLI_COMMANDS_H

#include "base/exit_code.h"

/* argv[0] is the command's name.  Returns the exit code. */
int cmd_gpu(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_env(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_smi(int argc, char **argv);
int cmd_diagnose(int argc, char **argv);
int cmd_cache(int argc, char **argv);
int cmd_config(int argc, char **argv);
int cmd_decode(int argc, char **argv);
int cmd_job(int argc, char **argv);
int cmd_plan(int argc, char **argv);
int cmd_plot(int argc, char **argv);
int cmd_sample(int argc, char **argv);
int cmd_bench(int argc, char **argv);
int cmd_selftest(int argc, char **argv);
int cmd_tensor(int argc, char **argv);
int cmd_train(int argc, char **argv);
int cmd_ui(int argc, char **argv);

#endif
