"""perl and the sqlite3 shell, each with a script of workloads/ whose output must be the same on glibc's malloc."""

import pathlib

from sandbox import check

WORKLOADS = pathlib.Path(__file__).parent.parent / 'workloads'


def perl(box):
    def work(shell):
        output = shell.run('perl', WORKLOADS / 'strings.pl', 20 if box.long else 2, env={'PERL_HASH_SEED': '1'})
        return {'output': output.stdout}
    output = box.same_on_both(work)['output']
    check(output.count(b'\n') > 20 and output.endswith(b'done\n'), f'unexpected: {output}')
    box.prove_use('perl')


def sqlite3(box):
    script = (WORKLOADS / 'orders.sql').read_bytes().replace(b'@rows@', b'300000' if box.long else b'30000')

    def work(shell):
        options = ('-batch', '-bail', '-init', '/dev/null')
        output = shell.run('sqlite3', *options, 'orders.db', stdin=script).stdout
        return {'output': output, 'dump': shell.run('sqlite3', *options, 'orders.db', '.dump').stdout}
    output = box.same_on_both(work)['output']
    check(output.count(b'integrity|ok\n') == 2, f'no sound database: {output}')
    check(output.endswith(b'done\n') and output.count(b'\n') > 30, f'unexpected: {output}')
    box.prove_use('sqlite3')
