"""git: a repository with fixed dates, whose hashes must be those of the same repository made on glibc's malloc.

The pack files themselves may differ (threads search for deltas), so what is compared is every object's name, type and
size, and what the reading commands print."""

import random

from sandbox import check

IDENTITY = {'GIT_AUTHOR_NAME': 'A', 'GIT_AUTHOR_EMAIL': 'a@example.org', 'GIT_COMMITTER_NAME': 'C',
            'GIT_COMMITTER_EMAIL': 'c@example.org', 'GIT_CONFIG_NOSYSTEM': '1'}


class Repository:
    def __init__(self, shell, path):
        self.shell = shell
        self.path = path
        self.clock = 1_000_000_000
        self.random = random.Random(1)

    def git(self, *words, **options):
        stamp = f'{self.clock} +0000'
        env = {**IDENTITY, 'GIT_AUTHOR_DATE': stamp, 'GIT_COMMITTER_DATE': stamp}
        return self.shell.run('git', '-C', self.path, *words, env=env, **options).stdout

    def commit_files(self, prefix, count):
        """Changes a few lines in some of many files, adds one, and commits."""
        for number in range(count):
            self.clock += 60
            directory = self.path / prefix / f'd{number % 5}'
            directory.mkdir(parents=True, exist_ok=True)
            lines = [f'{self.random.getrandbits(128):x}' for _ in range(self.random.randrange(20, 1500))]
            (directory / f'f{number}').write_text('\n'.join(lines))
            for file in sorted((self.path / prefix).glob('d*/f*'))[::3]:
                text = file.read_text().split('\n')
                text[self.random.randrange(len(text))] = f'change {number}'
                file.write_text('\n'.join(text))
            self.git('add', '-A')
            self.git('commit', '-q', '-m', f'{prefix} {number}')


def work(shell, commits):
    origin = Repository(shell, shell.dir / 'origin')
    shell.run('git', 'init', '-q', '-b', 'main', origin.path)
    origin.git('config', 'gc.auto', '0')
    origin.commit_files('base', commits)
    origin.git('checkout', '-q', '-b', 'side')
    origin.commit_files('side', commits // 2)
    origin.git('checkout', '-q', 'main')
    origin.commit_files('main', commits // 2)
    origin.git('merge', '-q', '--no-ff', '-m', 'merge', 'side')
    origin.git('tag', '-a', '-m', 'tagged', 'v1')
    origin.git('-c', 'pack.threads=4', 'gc', '-q', '--aggressive')
    origin.git('fsck', '--full', '--strict')
    # No --local: the objects travel through upload-pack and index-pack, which checks each one's hash.
    shell.run('git', 'clone', '-q', '--no-local', origin.path, shell.dir / 'clone')
    clone = Repository(shell, shell.dir / 'clone')
    clone.git('fsck', '--full', '--strict')
    objects = clone.git('cat-file', '--batch-all-objects', '--batch-check')
    check(objects == origin.git('cat-file', '--batch-all-objects', '--batch-check'), 'the clone has other objects')
    return {
        'head': clone.git('rev-parse', 'HEAD', 'v1', 'origin/side'),
        'objects': objects,
        'log': clone.git('log', '--stat', '--graph', '--all'),
        'patches': clone.git('log', '-p', '-M', '-C', '--word-diff', '-8'),
        'blame': clone.git('blame', 'base/d0/f0'),
        'grep': clone.git('grep', '-c', 'change', 'v1'),
        'archive': clone.git('archive', '--format=tar', 'HEAD'),
    }


def git(box):
    results = box.same_on_both(lambda shell: work(shell, 200 if box.long else 16))
    check(results['head'].count(b'\n') == 3, f'unexpected: {results["head"]}')
    box.prove_use('git')
