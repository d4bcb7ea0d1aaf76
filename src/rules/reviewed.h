/* SPDX-License-Identifier: Apache-2.0
 * When the tables of src/chip and of this folder were last reviewed against their sources. */
#ifndef CAIRN_RULES_REVIEWED_H
#define CAIRN_RULES_REVIEWED_H

#define RULES_REVIEWED "2026-11-15"

#endif
