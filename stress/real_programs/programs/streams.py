"""xz and openssl: what goes in comes out again, and what is written between is what glibc's malloc gives."""

import hashlib
import random

from sandbox import check


def xz(box):
    source = random.Random(2)
    words = [source.randbytes(source.randrange(2, 60)) for _ in range(5000)]
    data = b''.join(source.choices(words, k=4_000_000 if box.long else 200_000))

    def work(shell):
        # With a fixed block size the threads' output is that of one thread.
        packed = shell.run('xz', '-T2', '-6', '--block-size=2MiB', '-c', stdin=data).stdout
        check(len(packed) < len(data) // 2, f'{len(packed)} bytes of {len(data)}: nothing compressed')
        unpacked = shell.run('xz', '-T2', '-d', '-c', stdin=packed).stdout
        check(unpacked == data, 'the data came back changed')
        return {'compressed': packed}
    box.same_on_both(work)
    box.prove_use('xz')


def openssl(box):
    data = random.Random(3).randbytes(3_000_001)
    for shell in (box.plain(), box.preloaded()):
        for attempt in range(20 if box.long else 2):
            exchange(shell, data, attempt)
    box.prove_use('openssl')


def exchange(shell, data, attempt):
    """Keys are random, so each result is checked against itself, or against Python's own."""
    def run(*words, **options):
        return shell.run('openssl', *words, **options).stdout

    (shell.dir / 'data').write_bytes(data)
    for digest in ('sha256', 'sha512', 'blake2b512', 'md5'):
        own = hashlib.new('blake2b' if digest == 'blake2b512' else digest, data).hexdigest()
        check(own.encode() in run('dgst', f'-{digest}', 'data'), f'{digest} is wrong')
    for cipher in ('aes-256-cbc', 'aes-128-ctr', 'chacha20'):
        word = ('-pbkdf2', '-pass', f'pass:{attempt}')
        sealed = run('enc', f'-{cipher}', *word, stdin=data)
        check(data[:4096] not in sealed, f'{cipher} did not encrypt')
        check(run('enc', '-d', f'-{cipher}', *word, stdin=sealed) == data, f'{cipher}: the data came back changed')
    run('genrsa', '-out', 'rsa.pem', '2048')
    run('genpkey', '-algorithm', 'EC', '-pkeyopt', 'ec_paramgen_curve:P-256', '-out', 'ec.pem')
    for key in ('rsa.pem', 'ec.pem'):
        run('pkey', '-in', key, '-check', '-noout')
        run('pkey', '-in', key, '-pubout', '-out', 'public.pem')
        run('dgst', '-sha256', '-sign', key, '-out', 'signature', 'data')
        check(b'Verified OK' in run('dgst', '-sha256', '-verify', 'public.pem', '-signature', 'signature', 'data'),
              f'{key}: signature refused')
        (shell.dir / 'changed').write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
        run('dgst', '-sha256', '-verify', 'public.pem', '-signature', 'signature', 'changed', expect=1)
    run('req', '-x509', '-new', '-key', 'rsa.pem', '-subj', f'/CN=test {attempt}', '-days', '2', '-out', 'cert.pem')
    check(run('verify', '-CAfile', 'cert.pem', 'cert.pem') == b'cert.pem: OK\n', 'the certificate is refused')
    check(f'test {attempt}'.encode() in run('x509', '-in', 'cert.pem', '-noout', '-subject'), 'wrong subject')
