# SPDX-License-Identifier: Apache-2.0
"""Files good and bad, shown to the Python package and to cairn: both must accept or both must refuse.

Where cairn means to differ, the case says so by name, and the difference must be there.
"""
import collections
import json
import os
import random
import struct
import sys
import tempfile

import safetensors

import cairn_tensor
import tap

BITS = {'BOOL': 8, 'U8': 8, 'I8': 8, 'F8_E5M2': 8, 'F8_E4M3': 8, 'F8_E8M0': 8, 'I16': 16, 'U16': 16, 'F16': 16,
        'BF16': 16, 'I32': 32, 'U32': 32, 'F32': 32, 'F64': 64, 'I64': 64, 'U64': 64, 'C64': 64, 'F4': 4,
        'F6_E2M3': 6, 'F6_E3M2': 6}

# difference: what the package says of such a file (cairn says the opposite), and why cairn differs.
DIFFERENCES = {
    'duplicate keys': ('accepts', 'of two tensors with one name each reader would take another'),
    'NUL in text': ('accepts', 'names are C strings; a NUL hides what follows it'),
    'unknown dtype': ('refuses', 'a newer dtype can be listed and copied, not converted'),
    'deep nesting': ('refuses', 'the limit of the JSON library is 2048 levels, that of the package 127'),
    'minus zero': ('refuses', 'the JSON library reads -0 as 0'),
    'more than 64 dimensions': ('accepts', 'no framework has them, and the limit keeps shapes small'),
    'integers of 2^63 and more': ('accepts', 'the JSON library has signed 64-bit integers; no file is that large'),
}

Case = collections.namedtuple('Case', 'title data difference')


def tensor(dtype='F32', shape=(2,), begin=0, end=None):
    size = BITS.get(dtype, 8)
    for n in shape:
        size *= n
    return {'dtype': dtype, 'shape': list(shape), 'data_offsets': [begin, begin + size // 8 if end is None else end]}


def pack(header, data=b'', length=None):
    """header is a dict, text or bytes; length is what the first eight bytes claim."""
    if isinstance(header, dict):
        header = json.dumps(header)
    if isinstance(header, str):
        header = header.encode()
    return struct.pack('<Q', len(header) if length is None else length) + header + data


def valid(rng):
    """A good file, whole; everything about it is chosen anew."""
    header, at = {}, 0
    names = ['', 'a', 'a.b', 'blocks.0.weight', 'ü', '日本', '🙂', 'with space', 'q"uote', 'back\\slash', 'tab\t', 'x' * 300]
    for name in rng.sample(names, rng.randrange(0, 7)):
        dtype = rng.choice(list(BITS))
        shape = [rng.choice([0, 1, 1, 2, 3, 8]) for _ in range(rng.randrange(0, 5))]
        if BITS[dtype] % 8:
            shape = shape + [8]
        header[name] = tensor(dtype, shape, at)
        at = header[name]['data_offsets'][1]
    items = list(header.items())
    rng.shuffle(items)
    if rng.random() < 0.5:
        items.insert(rng.randrange(len(items) + 1), ('__metadata__', {k: 'värde' for k in rng.sample('abcdef', rng.randrange(4))}))
    text = json.dumps(dict(items), ensure_ascii=rng.random() < 0.5, indent=rng.choice([None, None, 1]))
    return pack(text + ' ' * rng.randrange(0, 20), rng.randbytes(at))


def random_cases(count):
    rng = random.Random(20)
    for i in range(count):
        yield Case(f'random valid file {i}', valid(rng), None)


def damaged_cases(count):
    """A valid file with a byte changed, cut off or added, mostly in the header."""
    rng = random.Random(21)
    for i in range(count):
        data = bytearray(valid(rng))
        how = rng.randrange(5)
        at = rng.randrange(min(len(data), 300))
        if how == 0:
            data[at] ^= 1 << rng.randrange(8)
        elif how == 1:
            del data[rng.randrange(len(data)):]
        elif how == 2:
            data += rng.randbytes(rng.randrange(1, 9))
        elif how == 3:
            del data[at]
        else:
            data[at:at] = rng.choice([b' ', b'0', b'1', b'-', b',', b'"', b'{', b']', b'\\', b'\n', b'\0', b'\xff'])
        yield Case(f'damaged file {i} (way {how} at {at})', bytes(data), odd_difference(bytes(data)))


def odd_difference(data):
    """A damage may by chance make one of the differences."""
    try:
        length = struct.unpack('<Q', data[:8])[0]
        pairs = []
        header = json.loads(data[8:8 + length].decode(), object_pairs_hook=lambda p: pairs.append(p) or dict(p))
    except (ValueError, struct.error, UnicodeDecodeError):
        return None
    if any(len(dict(p)) < len(p) for p in pairs):
        return 'duplicate keys'
    if '\\u0000' in json.dumps(header):
        return 'NUL in text'
    dtypes = [t.get('dtype') for k, t in header.items() if k != '__metadata__' and isinstance(t, dict)]
    return 'unknown dtype' if any(isinstance(d, str) and d not in BITS for d in dtypes) else None


F2 = tensor()  # two floats, eight bytes
DATA = bytes(8)


def text_of(**changes):
    """The header {"a": F2} with some fields as raw JSON text."""
    fields = {'dtype': '"F32"', 'shape': '[2]', 'data_offsets': '[0,8]', **changes}
    return '{"a":{' + ','.join(f'"{k}":{v}' for k, v in fields.items() if v is not None) + '}}'


def length_cases():
    for n in range(0, 8):
        yield Case(f'file of {n} bytes', bytes(n), None)
    yield Case('no header', pack(b''), None)
    yield Case('header of spaces', pack('   '), None)
    for length in (1, 2 ** 31, 2 ** 32, 2 ** 63 - 1, 2 ** 63, 2 ** 64 - 1, 100_000_000, 100_000_001):
        yield Case(f'header length {length} in a small file', pack({'a': F2}, DATA, length), None)
    yield Case('header one byte longer than the file', pack('{}', b'', 3), None)
    yield Case('data cut by one', pack({'a': F2}, DATA[:-1]), None)
    yield Case('one byte too many', pack({'a': F2}, DATA + b'x'), None)
    yield Case('empty object', pack('{}'), None)
    yield Case('empty object, data behind it', pack('{}', b'x'), None)


def json_cases():
    for text in ('[]', 'null', '1', '"a"', '{', '}', '{}x', '{} ', ' {}', '\n{}', '\ufeff{}', '{}\n', '{}\0', '{,}', "{'a':1}",
                 '{"a":}', '{"a":1}', '{"a":null}', '{"a":[]}', '{"a":{}}', '{"a":"b"}', '{"__metadata__":null}',
                 '{"__metadata__":[]}', '{"__metadata__":{}}', '{"__metadata__":{"a":1}}', '{"__metadata__":{"a":null}}',
                 '{"__metadata__":{"a":"b"}}', '{"__metadata__":{"a":{"b":"c"}}}', '{"__metadata__":"x"}', '{"__metadata__":{"":""}}'):
        yield Case(f'header {text!r}', pack(text), None)
    for raw in (b'{"\xff":1}', b'{"__metadata__":{"a":"\xc0\x80"}}', b'{"__metadata__":{"a":"\xed\xa0\x80"}}',
                b'{"__metadata__":{"a":"\\ud800"}}', b'{"__metadata__":{"a":"\\ud83d\\ude42"}}', b'{"__metadata__":{"a":"\\x"}}',
                b'{"__metadata__":{"a":"\n"}}', b'{"__metadata__":{"a":"\x7f"}}', b'{"__metadata__":{"a":"\\/"}}'):
        yield Case(f'header {raw!r}', pack(raw), None)
    yield Case('comment', pack('/* */{}'), None)
    yield Case('comma at the end', pack('{"__metadata__":{},}'), None)
    yield Case('metadata twice', pack('{"__metadata__":{},"__metadata__":{}}'), None)
    yield Case('NUL in a name', pack('{"a\\u0000b":' + json.dumps(F2) + '}', DATA), 'NUL in text')
    yield Case('NUL in metadata', pack('{"__metadata__":{"a":"b\\u0000"}}'), 'NUL in text')
    yield Case('a name twice', pack('{"a":' + json.dumps(F2) + ',"a":' + json.dumps(F2) + '}', DATA), 'duplicate keys')
    yield Case('a metadata key twice', pack('{"__metadata__":{"a":"1","a":"2"}}'), 'duplicate keys')


def field_cases():
    for name, values in {
        'dtype': [None, 'null', '1', '""', '"f32"', '" F32"', '["F32"]'],
        'shape': [None, 'null', '2', '[]', '[2.0]', '[2e0]', '[-2]', '["2"]', '[null]', '[true]', '[[2]]', '{}', '[2,]',
                  '[02]', '[-0]', '[1,2]', '[2,1,1]', '[0]', '[2,0]', '[1]', '[3]', '[4294967296,4294967296]',
                  '[9223372036854775807]', '[9223372036854775807,2]', '[4611686018427387904,4]', '[1e999]'],
        'data_offsets': [None, 'null', '8', '[]', '[0]', '[0,8,8]', '[0,8.0]', '[-1,8]', '[8,0]', '[0,7]', '[0,9]', '[1,9]',
                         '["0","8"]', '{"0":0,"1":8}', '[0,9223372036854775807]', '[-0,8]', '[8,8]', '[0,0]'],
    }.items():
        for value in values:
            # Another name in place of the dtype is only a dtype of the future.
            new = 'unknown dtype' if name == 'dtype' and value in ('""', '"f32"', '" F32"') else None
            if value == '[-0,8]':
                new = 'minus zero'
            yield Case(f'{name} {value}', pack(text_of(**{name: value}), DATA), new)
    for value in ('[9223372036854775808]', '[18446744073709551615]', '[18446744073709551616]'):
        yield Case(f'shape {value}', pack(text_of(shape=value), DATA), None)
    for extra in ('1', '"x"', '[1,[2]]', '{"y":null}', '1.5', '9223372036854775807'):
        yield Case(f'unknown field {extra}', pack(text_of(more=extra), DATA), None)
    for depth in (100, 120, 130, 1000, 5000):
        deep = 'deep nesting' if 127 < depth < 2048 else None
        yield Case(f'unknown field {depth} deep', pack(text_of(more='[' * depth + ']' * depth), DATA), deep)
    yield Case('unknown field 2^63', pack(text_of(more='9223372036854775808'), DATA), 'integers of 2^63 and more')
    yield Case('dtype twice', pack('{"a":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}}', DATA), None)
    yield Case('offsets before dtype', pack('{"a":{"data_offsets":[0,8],"shape":[2],"dtype":"F32"}}', DATA), None)
    for dtype in ('F8_E4M3FNUZ', 'F8_E5M2FNUZ'):
        yield Case(f'dtype {dtype}', pack({'a': tensor(dtype, (4,))}, bytes(4)), None)
    yield Case('dtype F3', pack({'a': tensor('F3', (4,), 0, 4)}, bytes(4)), 'unknown dtype')


def dtype_cases():
    for dtype, bits in BITS.items():
        for shape in ((), (1,), (0,), (8,), (2, 4), (3,), (0, 5)):
            elements = 1
            for n in shape:
                elements *= n
            size = elements * bits // 8
            yield Case(f'{dtype} {list(shape)}', pack({'a': tensor(dtype, shape, 0, size)}, bytes(size)), None)
            yield Case(f'{dtype} {list(shape)}, a byte more', pack({'a': tensor(dtype, shape, 0, size + 1)}, bytes(size + 1)), None)


def layout_cases():
    def two(a, b, size, title):
        header = {'a': {'dtype': 'U8', 'shape': [a[1] - a[0]], 'data_offsets': list(a)},
                  'b': {'dtype': 'U8', 'shape': [b[1] - b[0]], 'data_offsets': list(b)}}
        return Case(f'{title}: {a} {b} in {size}', pack(header, bytes(size)), None)

    yield two((0, 4), (4, 8), 8, 'in order')
    yield two((4, 8), (0, 4), 8, 'in reverse')
    yield two((0, 4), (5, 9), 9, 'a hole')
    yield two((1, 4), (4, 8), 8, 'a hole at the start')
    yield two((0, 4), (3, 8), 8, 'an overlap')
    yield two((0, 8), (0, 8), 8, 'one place for both')
    yield two((0, 8), (2, 4), 8, 'one inside the other')
    yield two((0, 4), (4, 8), 9, 'left over')
    yield two((0, 4), (4, 4), 4, 'an empty one at the end')
    yield two((0, 0), (0, 4), 4, 'an empty one at the start')
    yield two((2, 2), (0, 4), 4, 'an empty one inside another')
    yield two((4, 4), (4, 4), 4, 'empty ones at a hole')
    yield two((0, 0), (0, 0), 0, 'only empty ones')
    yield two((0, 0), (1, 1), 1, 'empty ones apart')
    for n in (63, 64, 65, 200):
        much = 'more than 64 dimensions' if n > 64 else None
        yield Case(f'{n} dimensions', pack({'a': tensor('U8', [1] * n)}, bytes(1)), much)
    many, at = {}, 0
    for i in range(2000):
        many[f'blocks.{i}.weight'] = tensor('BF16', (3,), at)
        at += 6
    yield Case('2000 tensors', pack(many, bytes(at)), None)


def verdict_of_package(path):
    try:
        with safetensors.safe_open(path, framework='np') as f:
            f.keys()
        return 'accepts', ''
    except Exception as e:  # any exception is a refusal
        return 'refuses', str(e)


def verdict_of_cairn(path):
    try:
        with cairn_tensor.safe_open(path, framework='plain') as f:
            f.keys()
        return 'accepts', ''
    except cairn_tensor.Error as e:
        return 'refuses', str(e)


def compare(case, folder):
    path = os.path.join(folder, 'case.safetensors')
    if os.path.exists(path):
        os.remove(path)
    with open(path, 'wb') as f:
        f.write(case.data)
    (package, why), (cairn, reason) = verdict_of_package(path), verdict_of_cairn(path)
    if cairn == 'refuses' and path not in reason:
        yield f'{case.title}: cairn does not name the file: {reason}'
    expected = package == cairn
    if case.difference:
        expected = package == DIFFERENCES[case.difference][0] and package != cairn
    # A file may be bad for both besides.
    if case.difference and case.title.startswith('damaged') and package == cairn == 'refuses':
        expected = True
    if not expected:
        yield f'{case.title}: the package {package} ({why}), cairn {cairn} ({reason}), difference: {case.difference}'


def comparison(title, cases, at_least):
    def run():
        findings, seen = [], 0
        with tempfile.TemporaryDirectory() as folder:
            for case in cases:
                seen += 1
                findings += compare(case, folder)
        if seen < at_least:
            findings.append(f'only {seen} cases')
        return findings
    run.__name__ = title
    return run


def every_difference_is_tried():
    tried = {c.difference for cases in (json_cases(), field_cases(), layout_cases()) for c in cases}
    return [f'no case of: {name}' for name in DIFFERENCES if name not in tried]


print(f'# safetensors {safetensors.__version__}, Python {sys.version.split()[0]}')
tap.run([
    comparison('valid files', random_cases(200), 200),
    comparison('damaged files', damaged_cases(600), 600),
    comparison('lengths', length_cases(), 20),
    comparison('JSON', json_cases(), 40),
    comparison('fields', field_cases(), 60),
    comparison('dtypes and shapes', dtype_cases(), 250),
    comparison('layout', layout_cases(), 15),
    every_difference_is_tried,
])
