"""g++ and clang++: the object file must have, byte by byte, what the compiler writes on glibc's malloc.

Compilers walk sets of pointers; an allocator that hands a block out twice, or loses what was written, changes the code
or kills the compiler. The compiled program is then linked and run on the preloaded malloc too."""

import pathlib

from sandbox import check

SOURCE = pathlib.Path(__file__).parent.parent / 'workloads' / 'compile_me.cc'


def compiler(name):
    def work(box, shell):
        results = {}
        for level in ('-O2', '-O0 -g', '-O3 -g') if box.long else ('-O2',):
            shell.run(name, '-std=c++20', *level.split(), '-Wall', '-c', SOURCE, '-o', 'compiled.o')
            results[f'object file {level}'] = (shell.dir / 'compiled.o').read_bytes()
            shell.run(name, 'compiled.o', '-o', 'compiled', '-pthread')
            results[f'output {level}'] = shell.run(shell.dir / 'compiled').stdout
        return results
    return work


def compile_and_run(box, name, *processes):
    # The directory is part of the debug information, so both runs have the same one.
    work = compiler(name)
    results = box.same_on_both(lambda shell: in_common_directory(box, shell, lambda: work(box, shell)))
    output = results['output -O2']
    check(output.endswith(b'done\n') and output.count(b'\n') > 20, f'unexpected output: {output}')
    box.prove_use(*processes)


def in_common_directory(box, shell, work):
    own, shell.dir = shell.dir, box.scratch / 'common'
    shell.dir.mkdir(exist_ok=True)
    for left in shell.dir.iterdir():
        left.unlink()
    try:
        return work()
    finally:
        shell.dir = own


def gcc(box):
    compile_and_run(box, 'g++', 'g++', 'cc1plus', 'as', 'collect2', 'ld', 'compiled')


def clang(box):
    compile_and_run(box, 'clang++', 'clang++', 'ld', 'compiled')
