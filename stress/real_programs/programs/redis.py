"""redis-server on a unix socket, under the load of redis-benchmark and of a client here that knows every value.

Debian's redis-server is linked with libjemalloc.so, whose names are plain `malloc` and `free`: the preloaded library
comes first and takes them, jemalloc's own mallctl still answers for MEMORY and INFO (so redis goes on naming jemalloc,
and its `allocator_` figures describe an idle jemalloc). `used_memory` is redis' own sum over malloc_usable_size.
The dump file is written by a forked child while the server's other threads run."""

import random
import re
import socket
import subprocess
import time

from sandbox import Failure, NotInUse, check, tail

KEYS = 3000


class Client:
    """As much of redis' protocol as the checks need."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(120)
        self.socket.connect(path)
        self.stream = self.socket.makefile('rb')

    def pipeline(self, commands):
        """Sends all commands, then reads all replies."""
        message = bytearray()
        for command in commands:
            words = [word if isinstance(word, bytes) else str(word).encode() for word in command]
            message += b'*%d\r\n' % len(words)
            for word in words:
                message += b'$%d\r\n%b\r\n' % (len(word), word)
        self.socket.sendall(message)
        return [self.reply() for _ in commands]

    def call(self, *words):
        return self.pipeline([words])[0]

    def reply(self):
        line = self.stream.readline()
        if not line.endswith(b'\r\n'):
            raise Failure('the server closed the connection')
        kind, rest = line[:1], line[1:-2]
        if kind == b'+':
            return rest
        if kind == b':':
            return int(rest)
        if kind == b'$':
            return None if rest == b'-1' else self.stream.read(int(rest) + 2)[:-2]
        if kind == b'*':
            return [self.reply() for _ in range(int(rest))]
        raise Failure(f'redis: {line}')


class Model:
    """What the database must hold: strings, hashes, lists and sorted sets, by the key's number modulo 4."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.keys = {}

    def value(self, mean):
        return self.random.randbytes(1 + int(self.random.expovariate(1 / mean)))

    def change(self):
        """A random command and the reply it must have."""
        number = self.random.randrange(KEYS)
        key = f'key:{number}'
        if self.random.random() < 0.1:
            return ('DEL', key), int(self.keys.pop(key, None) is not None)
        return (self.string, self.hash, self.list, self.sorted_set)[number % 4](key)

    def string(self, key):
        if self.random.random() < 0.5:
            self.keys[key] = self.value(1000)
            return ('SET', key, self.keys[key]), b'OK'
        more = self.value(200)
        self.keys[key] = self.keys.get(key, b'') + more
        return ('APPEND', key, more), len(self.keys[key])

    def hash(self, key):
        fields = self.keys.setdefault(key, {})
        field, value = b'%d' % self.random.randrange(300), self.value(100)
        new = field not in fields
        fields[field] = value
        return ('HSET', key, field, value), int(new)

    def list(self, key):
        values = self.keys.setdefault(key, [])
        values.append(self.value(200))
        return ('RPUSH', key, values[-1]), len(values)

    def sorted_set(self, key):
        scores = self.keys.setdefault(key, {})
        member, score = b'member %d' % self.random.randrange(300), self.random.randrange(1000)
        new = member not in scores
        scores[member] = score
        return ('ZADD', key, score, member), int(new)

    def question(self, key):
        """The command that reads a whole key, and what its reply must be once `normal` has put it in order."""
        value = self.keys[key]
        kind = int(key.split(':')[1]) % 4
        if kind == 0:
            return ('GET', key), value
        if kind == 2:
            return ('LRANGE', key, 0, -1), value
        flat = [(item, b'%d' % other if kind == 3 else other) for item, other in value.items()]
        return (('ZRANGE', key, 0, -1, 'WITHSCORES') if kind == 3 else ('HGETALL', key)), sorted(flat)

    @staticmethod
    def normal(command, reply):
        return sorted(zip(reply[::2], reply[1::2])) if command[0] in ('HGETALL', 'ZRANGE') else reply

    def verify(self, client):
        check(client.call('DBSIZE') == len(self.keys), 'DBSIZE is wrong')
        questions = [self.question(key) for key in self.keys]
        for start in range(0, len(questions), 100):
            part = questions[start:start + 100]
            for (command, expected), reply in zip(part, client.pipeline([command for command, _ in part])):
                check(self.normal(command, reply) == expected, f'{command}: a wrong value came back')


def serve(shell):
    process = shell.start(['redis-server', '--port', 0, '--unixsocket', 'redis.sock', '--save', '', '--dbfilename',
                           'dump.rdb', '--enable-debug-command', 'yes', '--io-threads', 2, '--hz', 100, '--logfile',
                           'log'], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    for _ in range(600):
        if shell.run('redis-cli', '-s', 'redis.sock', 'PING', expect=None).stdout == b'PONG\n':
            return process
        check(process.poll() is None, f'redis-server ended:\n{log(shell)}')
        time.sleep(0.1)
    raise Failure('redis-server does not answer')


def log(shell):
    file = shell.dir / 'log'
    return tail(file.read_bytes()) if file.exists() else '(no log)'


def benchmark(shell, requests, database):
    """Sixteen clients, pipelined; each test's line reports a rate, and the keys it made are there."""
    tests = 'set,get,incr,lpush,rpush,lpop,rpop,sadd,hset,spop,zadd,mset'
    output = shell.run('redis-benchmark', '-s', 'redis.sock', '-n', requests, '-c', 16, '-P', 16, '-d', 700, '-r',
                       20000, '-t', tests, '--csv', '--dbnum', database).stdout.decode()
    rates = re.findall(r'^"[A-Z]+.*","\d+\.\d+",', output, re.MULTILINE)
    check(len(rates) >= len(tests.split(',')), f'redis-benchmark: too few results\n{output}')
    check('rror' not in output, output)


def in_use(process, preload):
    with open(f'/proc/{process.pid}/maps') as maps:
        if not any(line.split(maxsplit=5)[-1].strip() == preload for line in maps):
            raise NotInUse(f'{preload} is not in /proc/pid/maps of redis-server')


def questions_by_cli(shell, size):
    """What an operator would look at."""
    def cli(*words):
        return shell.run('redis-cli', '-s', 'redis.sock', *words).stdout.decode()

    check(cli('DBSIZE') == f'{size}\n', 'redis-cli: DBSIZE is wrong')
    used = int(re.search(r'used_memory:(\d+)', cli('INFO', 'memory')).group(1))
    check(1 << 20 < used < 2 << 30, f'used_memory: {used}')
    check('peak.allocated' in cli('MEMORY', 'STATS'), 'no MEMORY STATS')
    check(cli('EVAL', "local t = {} for i = 1, 50000 do t[i] = tostring(i) end return #table.concat(t, ',')", 0) ==
          '288893\n', 'EVAL: wrong sum')


def load(shell, server, changes, requests):
    """Changes with known replies; saves by a forked child, under load; a reload of everything; and again."""
    # The server's directory by its pid: the path of a unix socket has to be short.
    client, model = Client(f'/proc/{server.pid}/cwd/redis.sock'), Model(4)
    for _ in range(changes // 500):
        part = [model.change() for _ in range(500)]
        for (command, expected), reply in zip(part, client.pipeline([command for command, _ in part])):
            check(reply == expected, f'{command[:2]}: reply {reply}, expected {expected}')
    model.verify(client)
    questions_by_cli(shell, len(model.keys))
    digest = client.call('DEBUG', 'DIGEST')
    for database in (1, 2):
        client.call('SELECT', database)
        client.call('BGSAVE')
        benchmark(shell, requests, database)
        check(client.call('DBSIZE') > 1000, "redis-benchmark's keys are missing")
        while b'rdb_bgsave_in_progress:1' in client.call('INFO', 'persistence'):
            time.sleep(0.05)
        check(b'rdb_last_bgsave_status:ok' in client.call('INFO', 'persistence'), 'BGSAVE failed')
        client.call('FLUSHDB', 'ASYNC')
    client.call('SELECT', 0)
    model.verify(client)
    check(client.call('DEBUG', 'RELOAD') == b'OK', 'DEBUG RELOAD failed')
    model.verify(client)
    check(client.call('DEBUG', 'DIGEST') == digest, 'the digest changed')
    return {'digest': digest}


def work(shell, changes, requests):
    server = serve(shell)
    try:
        if shell.preloaded:
            in_use(server, shell.box.preload)
        return load(shell, server, changes, requests)
    except (OSError, Failure) as error:
        raise error if isinstance(error, NotInUse) else Failure(f'{error}\n{log(shell)}') from error
    finally:
        server.kill()
        server.wait()


def redis(box):
    changes, requests = (400_000, 500_000) if box.long else (10_000, 5_000)
    box.same_on_both(lambda shell: work(shell, changes, requests))
    box.prove_use('redis-server', 'redis-cli', 'redis-benchmark')
