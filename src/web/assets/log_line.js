// SPDX-License-Identifier: Apache-2.0
// What a line of a log is.

// What a log says when it goes wrong; the first such line is marked, as what follows is often its consequence.
const ERROR = /\bTraceback \(most recent call last\)|(?:\b|[a-z_])(?:Error|Exception)\b|\b(?:[Ee]rror|ERROR|[Ff]atal|FATAL):|\b[Ss]egmentation fault|\bcore dumped|\bout of memory|\bKilled$|\bpanic:/;
const NO_ERROR = /\b(0 errors?|no error|error_correction|errors?=0|ignore[_ ]errors?)\b/i;
const BAR = /\d+%\|.*\||\d+\/\d+ \[\d+:\d+<|^step \d+\/\d+/;
// Colours and cursor movements of terminals.
const ESCAPES = /\u001b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\u0007]*(?:\u0007|\u001b\\)|.)/g;

export const clean = (line) => {
  const plain = line.replace(ESCAPES, '').replace(/\r+$/, '');
  return plain.slice(plain.lastIndexOf('\r') + 1);
};
export const isError = (line) => ERROR.test(line) && !NO_ERROR.test(line);
export const isBar = (line) => BAR.test(line);
