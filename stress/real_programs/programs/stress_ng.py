"""stress-ng's malloc stressor with --verify, bounded by operations: it has to make all of them, and find nothing.

--verify has the stressor write a value into each block and read it again before it frees the block, and compare
malloc_usable_size with what it asked for. --oomable: a stressor that the kernel kills is not quietly started again."""

import re

from sandbox import check, tail

WORKERS = 2
THREADS = 2


def stress_ng(box):
    shell = box.preloaded()
    for options in ((), ('--malloc-touch', '--malloc-bytes', '256K', '--malloc-max', '512')):
        operations = 20_000_000 if box.long else 800_000
        if options:
            operations //= 10
        bounds = ('--malloc-bytes', '16K', '--malloc-max', '8192', '--malloc-pthreads', THREADS, '--malloc-ops',
                  operations, '--timeout', '1600s' if box.long else '200s', '--temp-path', shell.dir)
        output = shell.run('stress-ng', '--malloc', WORKERS, *bounds, *options, '--verify', '--oomable', '--seed', '1',
                           '--metrics-brief')
        text = tail(output.stdout + output.stderr, 100)
        check(not re.search(r'fail|error|killed|terminated on|restart|OOM', text.replace('failed: 0', '')), text)
        made = re.search(r'metrc.*\bmalloc +(\d+)', text) or re.search(r'\bmalloc +(\d+) +\d+\.\d+ ', text)
        check(made and int(made.group(1)) >= operations, f'fewer than {operations} operations:\n{text}')
    box.prove_use('stress-ng')
