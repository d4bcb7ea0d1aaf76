/* SPDX-License-Identifier: Apache-2.0
 * The gfx table for people and for docs/chips.md. */
#ifndef CAIRN_CLI_CHIPS_H
#define CAIRN_CLI_CHIPS_H

void chips_print_table(void);
void chips_print_markdown(void);

#endif
