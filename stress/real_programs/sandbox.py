"""Runs real programs on a preloaded malloc and on glibc's, bounded in time and memory, and proves which one they used.

A case is a function of a Sandbox. Its work is a function of a Shell, an empty directory and an environment: one Shell
has the library in LD_PRELOAD, the other has none, and what the work returns must be the same in both.

Proof of use: every process of the preloaded Shell runs with LD_DEBUG=files,bindings, so the dynamic linker itself
writes, for each process, what `malloc` and its kin were bound to. `prove_use` demands that each named program bound
malloc to the preloaded library, and that no object of any process bound a function of the family to anything else.
The linker writes with write(2), into a file: neither the program's output nor its allocations change.

Bounds: the memory limits of setrlimit do not fit an allocator that reserves terabytes of address space and makes it
writable in large pieces, of which it touches little (RLIMIT_AS, RLIMIT_DATA count both). So a watchdog adds up the
resident memory of all processes below this one. As the subreaper it is also the parent of those that detach, and kills
them all at the end: descendants only, by pid."""

import collections
import ctypes
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import threading
import time

PATH = '/usr/sbin:/usr/bin:/sbin:/bin'
# Not reallocarray: it calls realloc, wherever it comes from (libbsd has its own).
FAMILY = frozenset(('malloc', 'calloc', 'realloc', 'free', 'aligned_alloc', 'memalign', 'posix_memalign', 'valloc',
                    'pvalloc', 'malloc_usable_size'))
RESIDENT_LIMIT = 4 << 30
FILE_LIMIT = 2 << 30
PR_SET_CHILD_SUBREAPER = 36
BINDING = re.compile(r"binding file (.+?) \[\d+\] to (.+?) \[\d+\]: normal symbol `(\w+)'")
PROGRAM = re.compile(r'initialize program: (.+)')
FIRST_LINE = re.compile(r'\sfile=(.+?) \[\d+\];  needed by ')

Output = collections.namedtuple('Output', 'stdout stderr status')


class Failure(Exception):
    """The case failed: the program, or its result, is wrong."""


class NotInUse(Failure):
    """The program ran, but not on the preloaded malloc."""


class Missing(Exception):
    """The machine lacks a program."""


def check(condition, message):
    if not condition:
        raise Failure(message)


def tail(data, lines=40):
    return '\n'.join(data.decode(errors='replace').splitlines()[-lines:])


def program(name):
    """The full path of a program of the distribution (never of a version manager's directory)."""
    path = shutil.which(name, path=PATH)
    if not path:
        raise Missing(f'{name} is not installed')
    return path


def descendants():
    """(pid, resident bytes) of every process below this one."""
    parents, resident = {}, {}
    for entry in os.listdir('/proc'):
        if not entry.isdigit():
            continue
        try:
            stat = pathlib.Path('/proc', entry, 'stat').read_text(errors='replace').rpartition(')')[2].split()
        except OSError:
            continue
        parents[int(entry)] = int(stat[1])
        resident[int(entry)] = int(stat[21]) * resource.getpagesize()
    below, grown = {os.getpid()}, True
    while grown:
        more = {pid for pid, parent in parents.items() if parent in below} - below
        below |= more
        grown = bool(more)
    return [(pid, resident[pid]) for pid in below - {os.getpid()}]


class Watchdog(threading.Thread):
    """Kills all descendants when their resident memory or their time is over the limit; `verdict` says so."""

    def __init__(self, seconds):
        super().__init__(daemon=True)
        self.deadline = time.monotonic() + seconds
        self.verdict = None
        self.stopped = threading.Event()

    def run(self):
        while not self.stopped.wait(0.1):
            family = descendants()
            if sum(resident for _, resident in family) > RESIDENT_LIMIT:
                self.verdict = f'over {RESIDENT_LIMIT >> 20} MiB resident'
            elif time.monotonic() > self.deadline:
                self.verdict = 'out of time'
            if self.verdict:
                kill(pid for pid, _ in family)

    def stop(self):
        self.stopped.set()
        self.join()


def kill(pids):
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


class Shell:
    """A directory and an environment in which programs run; `preloaded` says on which malloc."""

    def __init__(self, box, name, preload):
        self.box = box
        self.preloaded = bool(preload)
        self.dir = box.scratch / name
        self.dir.mkdir()
        home = self.dir / 'home'
        home.mkdir()
        self.env = {'PATH': PATH, 'HOME': str(home), 'TMPDIR': str(home), 'LANG': 'C.UTF-8', 'TZ': 'UTC'}
        self.env.update((key, value) for key, value in os.environ.items() if key.startswith('RTSPAN_'))
        if preload:
            self.env.update(LD_PRELOAD=preload, LD_DEBUG='files,bindings', LD_DEBUG_OUTPUT=str(box.logs / 'ld'))

    def start(self, argv, cwd=None, env=None, **options):
        """A process in a session of its own."""
        argv = [str(word) for word in argv]
        argv[0] = program(argv[0])
        return subprocess.Popen(argv, cwd=cwd or self.dir, env={**self.env, **(env or {})}, start_new_session=True,
                                **options)

    def run(self, *argv, stdin=b'', expect=0, **options):
        """Runs a program to its end; a Failure unless it exits with `expect` (None: with anything)."""
        process = self.start(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
        stdout, stderr = process.communicate(stdin)
        self.box.watch()
        where = 'preloaded' if self.preloaded else 'on glibc'
        if expect is not None and process.returncode != expect:
            raise Failure(f'{" ".join(map(str, argv))} ({where}): status {process.returncode}, not {expect}\n'
                          f'{tail(stdout)}\n{tail(stderr)}')
        return Output(stdout, stderr, process.returncode)


class Sandbox:
    def __init__(self, preload, scratch, seconds, long):
        check(not set(preload) & set(' :'), 'LD_PRELOAD takes no path with a space or colon')
        self.preload = preload
        self.scratch = pathlib.Path(scratch)
        self.long = long
        self.logs = self.scratch / 'linker'
        self.logs.mkdir()
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_LIMIT, FILE_LIMIT))
        self.watchdog = Watchdog(seconds)
        self.watchdog.start()

    def close(self):
        self.watchdog.stop()
        while family := descendants():
            kill(pid for pid, _ in family)
            try:
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            except ChildProcessError:
                pass
            time.sleep(0.01)

    def watch(self):
        check(not self.watchdog.verdict, f'stopped by the watchdog: {self.watchdog.verdict}')

    def preloaded(self, name='preloaded'):
        return Shell(self, name, self.preload)

    def plain(self, name='plain'):
        return Shell(self, name, None)

    def same_on_both(self, work):
        """Runs work(shell) on both mallocs; its dict of results must be the same. Returns it."""
        expected = work(self.plain())
        actual = work(self.preloaded())
        check(expected and all(expected.values()), f'a result of glibc\'s run is empty: {expected}')
        check(actual.keys() == expected.keys(), f'results {list(actual)}, expected {list(expected)}')
        for key, value in expected.items():
            if actual[key] != value:
                raise Failure(f'{key} differs from glibc\'s run\nexpected: {shorten(value)}\nactual:   '
                              f'{shorten(actual[key])}')
        return actual

    def prove_use(self, *programs):
        """Each of the named programs ran, with malloc bound to the preloaded library, and nothing was bound past it."""
        on_preload = set()
        for log in sorted(self.logs.iterdir()):
            for image in images(log, self.preload):
                family = [binding for binding in image.bindings if binding.symbol in FAMILY]
                called = any(source == image.program and target == self.preload for source, target, _ in family)
                for source, target, symbol in family:
                    # An executable at a fixed address that takes &free gives it its own jump to `free` as address.
                    own_jump = target == image.program and called
                    if source != self.preload and target != self.preload and not own_jump:
                        raise NotInUse(f'{image.program}: {source} uses {symbol} of {target}')
                    if symbol == 'malloc' and target == self.preload and source != self.preload:
                        on_preload.add(os.path.basename(image.program))
        missing = set(programs) - on_preload
        if missing:
            raise NotInUse(f'not seen with malloc bound to {self.preload}: {sorted(missing)}; seen: '
                           f'{sorted(on_preload)}')


Binding = collections.namedtuple('Binding', 'source target symbol')
Image = collections.namedtuple('Image', 'program bindings')


def images(log, preload):
    """The programs that one process ran, one after the other by exec, as the dynamic linker logged them."""
    name, bindings = '?', []
    with open(log, errors='replace') as lines:
        for line in lines:
            if found := BINDING.search(line):
                bindings.append(Binding(*found.groups()))
            elif found := PROGRAM.search(line):
                name = found.group(1)
            elif (found := FIRST_LINE.search(line)) and found.group(1) == preload and name != '?':
                yield Image(name, bindings)
                name, bindings = '?', []
    yield Image(name, bindings)


def shorten(value, most=1500):
    text = value.decode(errors='replace') if isinstance(value, bytes) else str(value)
    return text if len(text) <= most else f'{text[:most]}... ({len(text)} characters)'
