# SPDX-License-Identifier: Apache-2.0
"""The library to preload shows exactly the functions of calls.def, needs only libc, and does nothing when it is loaded."""
import glob
import os
import re
import shutil
import sys

import lint

LIBRARY = os.path.realpath(sys.argv[1])
TABLE = 'src/preload/calls.def'
# Both glibc and musl have these: with one that musl has not, programs that stand on it would not start.
KNOWN = set('''
__errno_location clock_gettime close dl_iterate_phdr dladdr dlclose dlerror dlopen dlsym getauxval getenv getpid getrlimit madvise
memcpy memmove memset mmap munmap open posix_fallocate process_vm_readv pthread_mutex_lock pthread_mutex_unlock pthread_setcancelstate
read sched_yield sigfillset sigprocmask snprintf strcmp strcpy strcspn strlen strncmp strrchr strspn strstr syscall sysconf unlink
usleep
'''.split())
# The loader of an older glibc than this does not start a program with the library.
OLDEST_GLIBC = (2, 17)
MUSL = glob.glob('/lib/ld-musl-*.so.1')
# The compiler's own, which nobody has to have.
WEAK = {'_ITM_deregisterTMCloneTable', '_ITM_registerTMCloneTable', '__cxa_finalize', '__gmon_start__'}

if not shutil.which('readelf'):
    lint.skip('no readelf')


def symbols(library=LIBRARY):
    """(name, defined?) of everything in the dynamic table."""
    for line in lint.run('readelf', '--dyn-syms', '--wide', library).stdout.splitlines():
        words = line.split()
        if len(words) >= 8 and words[0].endswith(':') and words[0][:-1].isdigit():
            yield words[7].split('@')[0], words[6] != 'UND'


def wrapped():
    rows = re.findall(r'^(?:HIP_)?(?:OWN|PASS)\((\w+)', lint.read(TABLE), re.M)
    return set(rows)


def export_findings():
    shown = {name for name, defined in symbols() if defined}
    yield from (f'{TABLE} has {name}, the library does not show it' for name in sorted(wrapped() - shown))
    yield from (f'the library shows {name}, {TABLE} does not have it' for name in sorted(shown - wrapped()))


def import_findings():
    wanted = {name for name, defined in symbols() if not defined} - WEAK
    yield from (f'{LIBRARY} needs {name}, which musl may not have' for name in sorted(wanted - KNOWN))
    for line in lint.run('readelf', '--dynamic', '--wide', LIBRARY).stdout.splitlines():
        needed = re.search(r'\(NEEDED\).*\[(.*)\]', line)
        # musl takes itself for these, and for no other.
        if needed and not needed.group(1).startswith(('libc.so', 'libdl.so', 'libpthread.so')):
            yield f'{LIBRARY} needs {needed.group(1)}'
    for version in set(re.findall(r'@GLIBC_([\d.]+)', lint.run('readelf', '--dyn-syms', '--wide', LIBRARY).stdout)):
        if os.uname().machine == 'x86_64' and tuple(map(int, version.split('.'))) > OLDEST_GLIBC:
            yield f'{LIBRARY} needs glibc {version}'


def musl_findings():
    has = {name for name, defined in symbols(MUSL[0]) if defined}
    yield from (f'{MUSL[0]} has no {name}' for name in sorted(KNOWN - has))


def start_findings():
    """The compiler puts one function of its own into each list."""
    for line in lint.run('readelf', '--sections', '--wide', LIBRARY).stdout.splitlines():
        match = re.search(r'\.(init|fini)_array\s+\S+\s+\S+\s+\S+\s+([0-9a-f]+)', line)
        if match and int(match.group(2), 16) > 8:
            yield f'{LIBRARY}: work in .{match.group(1)}_array'


lint.report(
    ('the library shows the wrapped functions, and no other', export_findings()),
    ('it needs libc, and what every libc has', import_findings()),
    ('it does nothing when it is loaded', start_findings()),
    ('musl has what every libc has', musl_findings() if MUSL else lint.Skip('no musl')),
    ('there are functions to look for', [] if len(wrapped()) > 40 else [f'{TABLE} has few']),
)
