/* SPDX-License-Identifier: Apache-2.0
 * Character references of HTML (&eacute; &#233; &#xe9;), as two functions of Python replace them. */
#ifndef CAIRN_TEXT_HTML_UNESCAPE_H
#define CAIRN_TEXT_HTML_UNESCAPE_H

#include "text/runes.h"

/* html.unescape: by the rules of HTML 5, so that some names need no semicolon ("&ampx" is "&x"), and invalid
 * numbers are replaced or dropped.  A number of any length is accepted; Python refuses over 4300 digits. */
void html_unescape(const struct runes *in, struct runes *out);
/* ftfy's: only references that end with a semicolon; names of Latin letters and symbols may be in capitals.  A
 * reference to a semicolon stays. */
void html_unescape_strict(const struct runes *in, struct runes *out);
/* As many passes of html_unescape_strict at once as only turn references to "&" into "&", of which "&amp;amp;amp;lt;" needs
 * three; false if there is no such pass.  A pass for each level would take quadratic time. */
bool html_unnest_strict(const struct runes *in, struct runes *out);

#endif
