"""Our own client of liburcu (urcu_client/), whose nodes come from malloc and are freed by other threads.

With signals, its threads also allocate and free in handlers that interrupt malloc and free: with any other malloc that
hangs soon."""

import os
import re

from sandbox import check


def run(box, client, *options):
    operations = 10_000_000 if box.long else 500_000
    client = os.path.realpath(client)
    output = box.preloaded().run(client, operations, *options).stdout.decode()
    counts = re.fullmatch(r'passed: (\d+) nodes, (\d+) of them in handlers, none live\n', output)
    check(counts and int(counts.group(1)) > operations, f'unexpected output: {output}')
    check(bool(options) == (int(counts.group(2)) > 0), f'handlers: {output}')
    box.prove_use(os.path.basename(client))


def urcu(box, client):
    run(box, client)


def urcu_signals(box, client):
    run(box, client, '--signals')
