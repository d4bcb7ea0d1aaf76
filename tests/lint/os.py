# SPDX-License-Identifier: Apache-2.0
"""What another system does otherwise is called in src/os alone; so are files, by its rules of links and permissions."""
import re

import lint

FILES = '''
open openat openat2 creat fopen freopen rename renameat renameat2 unlink unlinkat remove rmdir opendir fdopendir readdir
scandir scandirat mkdir mkdirat mkdtemp mkstemp mkostemp mkostemps symlink symlinkat link linkat readlink readlinkat flock
mmap munmap memfd_create
'''
SYSTEM = '''
aligned_alloc posix_memalign memalign madvise sysconf sched_getaffinity dlopen dlsym dlerror pthread_create sigaction
signal sigfillset fork vfork execve execv execvp posix_spawn posix_spawnp waitpid waitid prctl setrlimit
'''
TEXT = re.compile(r'/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)

# src/preload lives in other processes and includes nothing.
APART = ('src/os/', 'src/preload/')
# To live with a trainer means its process group, its terminal and /proc: another system gets another src/run.
PROCESSES = ('src/run/', 'src/cli/cmd_run.c')


def calls(path, names):
    """(number, name) of each call, comments and texts apart."""
    raw = re.compile(r'(?<![\w.>])(' + '|'.join(names.split()) + r')\s*\(')
    text = TEXT.sub(lambda found: '\n' * found.group().count('\n'), lint.read(path))
    for number, line in enumerate(text.splitlines(), 1):
        for name in raw.findall(line):
            yield number, name


def findings(sources, names):
    for path in sources:
        for number, name in calls(path, names):
            yield f'{path}:{number}: {name}() belongs to src/os'


sources = [path for path in lint.files('.c', '.h', under='src/') if not path.startswith(APART)]
lint.report(
    ('files are opened, renamed and removed by src/os', findings(sources, FILES)),
    ('memory, libraries, threads and processes come from src/os',
     findings([path for path in sources if not path.startswith(PROCESSES)], SYSTEM)),
    ('there are sources to look at', [] if sources else ['no file below src/']),
)
