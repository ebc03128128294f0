"""CPython's own tests, as Debian ships them, with every Python object coming from malloc (PYTHONMALLOC=malloc).

The result is the JUnit report: every test file there, no failure, no error, and at least as many tests as Python 3.11
has. A second, smaller run has PYTHONMALLOC=malloc_debug, where CPython fills each block, surrounds it with guard bytes
and checks them at every free and realloc."""

import os
import xml.etree.ElementTree

from sandbox import Missing, check, program, tail

# test file -> the least number of tests it reports on Debian 12
OBJECTS = {'test_json': 150, 'test_dict': 90, 'test_re': 100, 'test_list': 40, 'test_set': 500, 'test_bytes': 250,
           'test_collections': 80, 'test_deque': 60, 'test_sort': 15, 'test_heapq': 40}
THREADS = {'test_threading': 150, 'test_queue': 40, 'test_thread': 15, 'test_gc': 30}
DEBUG = {'test_json': 150, 'test_dict': 90, 'test_list': 40}
LONG_OBJECTS = {'test_unicode': 90, 'test_itertools': 90, 'test_memoryview': 100, 'test_pickle': 500, 'test_array': 400,
                'test_buffer': 60, 'test_zlib': 50, 'test_hashlib': 50, 'test_generators': 30, 'test_struct': 30,
                'test_decimal': 300, 'test_ast': 100, 'test_bz2': 80, 'test_lzma': 100, 'test_io': 500}
LONG_THREADS = {'test_weakref': 100, 'test_concurrent_futures': 150, 'test_fork1': 5}


def run_tests(shell, name, tests, allocator):
    python = program('python3')
    if shell.run(python, '-c', 'import test.test_json', expect=None).status:
        raise Missing("CPython's tests (Debian: libpython3-testsuite) are not installed")
    report = shell.dir / f'{name}.xml'
    output = shell.run(python, '-m', 'test', '-j2', '--timeout', 250, '--junit-xml', report, *tests,
                       env={'PYTHONMALLOC': allocator}, expect=None)
    transcript = f'{tail(output.stdout, 80)}\n{tail(output.stderr)}'
    check(output.status == 0, f'python3 -m test: status {output.status}\n{transcript}')
    root = xml.etree.ElementTree.parse(report).getroot()
    counts = dict.fromkeys(tests, 0)
    for case in root.iter('testcase'):
        where = case.get('name')
        check(not case.findall('failure') and not case.findall('error'), f'{where} failed\n{transcript}')
        for test in tests:
            if where.startswith((f'test.{test}.', f'{test}.')):
                counts[test] += 1
    few = {test: count for test, count in counts.items() if count < tests[test]}
    check(not few, f'too few tests: {few}\n{transcript}')
    return os.path.basename(python)


def objects(box):
    shell = box.preloaded()
    tests = {**OBJECTS, **LONG_OBJECTS} if box.long else OBJECTS
    python = run_tests(shell, 'objects', tests, 'malloc')
    run_tests(shell, 'debug', tests if box.long else DEBUG, 'malloc_debug')
    box.prove_use(python)


def threads(box):
    python = run_tests(box.preloaded(), 'threads', {**THREADS, **LONG_THREADS} if box.long else THREADS, 'malloc')
    box.prove_use(python)
