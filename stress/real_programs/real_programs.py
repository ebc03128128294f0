"""Real programs on a preloaded malloc: one case per program, each with its result checked.

    real_programs.py --library /path/to/librtspan.so --case git [--scratch DIR] [--keep]

RTSPAN_LONG=1 in the environment runs the long version. Exit status: 0 passed, 1 failed, 77 (meson: skipped) where the
machine lacks a program; with CI set in the environment that is a failure too."""

import argparse
import functools
import os
import shutil
import signal
import sys
import tempfile

import sandbox
from programs import compilers, cpython, git, redis, scripts, streams, stress_ng, urcu

CASES = {
    'clang++': compilers.clang,
    'cpython-objects': cpython.objects,
    'cpython-threads': cpython.threads,
    'g++': compilers.gcc,
    'git': git.git,
    'openssl': streams.openssl,
    'perl': scripts.perl,
    'redis': redis.redis,
    'sqlite3': scripts.sqlite3,
    'stress-ng': stress_ng.stress_ng,
    'xz': streams.xz,
}
OWN_CLIENT = {'urcu': urcu.urcu, 'urcu-signals': urcu.urcu_signals}


def run(arguments, case):
    long = os.environ.get('RTSPAN_LONG', '0') not in ('', '0')
    # A test runner's time limit: end through the finally clauses, which end all processes below this one.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit('terminated'))
    scratch = tempfile.mkdtemp(prefix='real_programs.', dir=arguments.scratch)
    try:
        box = sandbox.Sandbox(os.path.realpath(arguments.library), scratch, 1700 if long else 280, long)
        try:
            case(box)
            box.watch()
        finally:
            box.close()
    finally:
        if arguments.keep:
            print(f'kept: {scratch}')
        else:
            shutil.rmtree(scratch, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--library', required=True, help='the shared library to test')
    parser.add_argument('--case', required=True, choices=sorted([*CASES, *OWN_CLIENT]))
    parser.add_argument('--client', help=f'the urcu_client program, for {" and ".join(OWN_CLIENT)}')
    parser.add_argument('--scratch', help='directory for temporary files (default: the system\'s)')
    parser.add_argument('--keep', action='store_true', help='leave the temporary files')
    parser.add_argument('--expect-refusal', action='store_true',
                        help='pass only if the case finds that the library is not in use')
    arguments = parser.parse_args()
    if arguments.case in CASES:
        case = CASES[arguments.case]
    elif arguments.client:
        case = functools.partial(OWN_CLIENT[arguments.case], client=arguments.client)
    else:
        parser.error(f'case {arguments.case} needs --client')
    try:
        run(arguments, case)
    except sandbox.Missing as missing:
        print(f'SKIP {arguments.case}: {missing}')
        return 1 if os.environ.get('CI') else 77
    except sandbox.NotInUse as refusal:
        print(f'{arguments.case}: {refusal}')
        return 0 if arguments.expect_refusal else 1
    except sandbox.Failure as failure:
        print(f'FAILED {arguments.case}: {failure}')
        return 1
    if arguments.expect_refusal:
        print(f'{arguments.case}: passed, though the library takes no part')
        return 1
    print(f'{arguments.case}: passed')
    return 0


if __name__ == '__main__':
    sys.exit(main())
