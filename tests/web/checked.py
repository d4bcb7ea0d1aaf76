# SPDX-License-Identifier: Apache-2.0
"""A server whose answers are compared with openapi.json."""
from webserver import Server, expect


# ---- a small validator: the part of JSON Schema that openapi.json uses ----

TYPES = {'object': dict, 'array': list, 'string': str, 'integer': int, 'number': (int, float), 'boolean': bool, 'null': type(None)}


def has_type(value, name):
    return isinstance(value, TYPES[name]) and not (isinstance(value, bool) and name in ('integer', 'number'))


def schema_findings(api, schema, value, where='$'):
    if '$ref' in schema:
        yield from schema_findings(api, api['components']['schemas'][schema['$ref'].rsplit('/', 1)[1]], value, where)
        return
    if 'const' in schema and value != schema['const'] or 'enum' in schema and value not in schema['enum']:
        yield f'{where}: {value!r} is not what it must be'
    names = schema.get('type')
    if names and not any(has_type(value, n) for n in ([names] if isinstance(names, str) else names)):
        yield f'{where}: {value!r} is no {names}'
        return
    if isinstance(value, dict):
        known = schema.get('properties', {})
        yield from (f'{where}: no {k}' for k in schema.get('required', []) if k not in value)
        if schema.get('additionalProperties') is False:
            yield from (f'{where}: {k} is not described' for k in value if k not in known)
        for k, v in value.items():
            if k in known:
                yield from schema_findings(api, known[k], v, f'{where}.{k}')
    elif isinstance(value, list) and 'items' in schema:
        for i, v in enumerate(value):
            yield from schema_findings(api, schema['items'], v, f'{where}[{i}]')


def answer_findings(api, method, path, answer):
    """Whether the answer is one that openapi.json describes."""
    responses = api['paths'][path][method]['responses']
    response = responses.get(str(answer.status), responses['default'])
    if '$ref' in response:
        response = api['components']['responses'][response['$ref'].rsplit('/', 1)[1]]
    content = response.get('content', {})
    kind = answer.headers.get('content-type', '').split(';')[0]
    if not content:
        return [f'{method} {path}: {answer.status} has a body'] if answer.body else []
    if kind not in content and '*/*' not in content:
        return [f'{method} {path}: {answer.status} is {kind}']
    schema = content.get(kind, {}).get('schema')
    return [f'{method} {path}: {f}' for f in schema_findings(api, schema, answer.json())] if schema else []


class Checked:
    """A server whose answers are compared with openapi.json."""

    def __init__(self, *options):
        self.s = Server(*options).login()
        self.api = self.s.get('/api/v1/openapi.json').json()
        self.findings = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.s.__exit__()

    def get(self, path, *more, status=200, template=None, **named):
        answer = self.s.get(path, *more, **named)
        self.see('get', template or path.split('?')[0], answer, status)
        return answer

    def change(self, method, path, *more, status=200, template=None, **named):
        answer = self.s.change(method, path, *more, **named)
        self.see(method.lower(), template or path, answer, status)
        return answer

    def post(self, path, *more, **named):
        return self.change('POST', path, *more, **named)

    def see(self, method, path, answer, status):
        expect(self.findings, f'{method} {path}', answer.status, status)
        if answer.status != status:
            self.findings.append(answer.body[:300].decode(errors='replace'))
        self.findings += answer_findings(self.api, method, path, answer)

    def same(self, what, got, want):
        expect(self.findings, what, got, want)
