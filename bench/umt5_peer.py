#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""umT5-XXL in PyTorch, beside tests/tools/umt5_bench: random weights of full size, speed, and the same rows.

umt5_peer.py make FILE               writes a model (bf16, Hugging Face names, 11 GB)
umt5_peer.py run FILE [ROWS.f32 TOKENS]
    times 512 tokens, batch 1 and 8, by plain matmuls and by scaled_dot_product_attention, and compares ROWS, the rows that
    umt5_bench wrote, with its own in f32

The encoder is that of transformers: separate linears, norms in f32, a bias from a table in every layer (its buckets are computed
once here, to PyTorch's favour)."""
import json, math, struct, sys, time
import torch
import torch.nn.functional as F

VOCAB, DIM, HEADS, SIZE, FFN, LAYERS = 256384, 4096, 64, 64, 10240, 24


def tensors():
    yield "shared.weight", (VOCAB, DIM), 1.0
    for i in range(LAYERS):
        a, b = f"encoder.block.{i}.layer.0.", f"encoder.block.{i}.layer.1."
        inner = HEADS * SIZE
        yield a + "SelfAttention.q.weight", (inner, DIM), (DIM * SIZE) ** -0.5
        for name in "kv":
            yield a + f"SelfAttention.{name}.weight", (inner, DIM), DIM**-0.5
        yield a + "SelfAttention.o.weight", (DIM, inner), inner**-0.5
        yield a + "SelfAttention.relative_attention_bias.weight", (32, HEADS), 0.5
        yield a + "layer_norm.weight", (DIM,), None
        yield b + "DenseReluDense.wi_0.weight", (FFN, DIM), DIM**-0.5
        yield b + "DenseReluDense.wi_1.weight", (FFN, DIM), DIM**-0.5
        yield b + "DenseReluDense.wo.weight", (DIM, FFN), FFN**-0.5
        yield b + "layer_norm.weight", (DIM,), None
    yield "encoder.final_layer_norm.weight", (DIM,), None


def make(path):
    header, at = {}, 0
    for name, shape, _ in tensors():
        size = 2 * math.prod(shape)
        header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    gen = torch.Generator("cuda").manual_seed(1)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for _, shape, std in tensors():
            x = torch.randn(shape, device="cuda", generator=gen) * (std or 0.1) + (0 if std else 1)
            f.write(x.bfloat16().cpu().view(torch.uint8).numpy().data)


def load(path):
    with open(path, "rb") as f:
        n = struct.unpack("<Q", f.read(8))[0]
        header = json.loads(f.read(n))
    data, out = torch.from_file(path, size=8 + n + max(v["data_offsets"][1] for v in header.values()), dtype=torch.uint8), {}
    for name, v in header.items():
        a, b = v["data_offsets"]
        out[name] = data[8 + n + a : 8 + n + b].cuda().view(torch.bfloat16).view(v["shape"])
    return out


def buckets(n):
    rel = torch.arange(n)[None, :] - torch.arange(n)[:, None]
    m = rel.abs()
    large = (8 + (torch.log(m.clamp(min=1).double() / 8) / math.log(16) * 8 + 1e-9).floor().long()).clamp(max=15)
    return (torch.where(m < 8, m, large) + 16 * (rel > 0)).cuda()


def norm(x, w):
    return w * (x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6)).to(w.dtype)


def encode(w, ids, index, sdpa):
    x = F.embedding(ids, w["shared.weight"])
    b, n = ids.shape
    for i in range(LAYERS):
        p, f = f"encoder.block.{i}.layer.0.", f"encoder.block.{i}.layer.1."
        y = norm(x, w[p + "layer_norm.weight"])
        q, k, v = (F.linear(y, w[p + f"SelfAttention.{c}.weight"]).view(b, n, HEADS, SIZE).transpose(1, 2) for c in "qkv")
        bias = F.embedding(index, w[p + "SelfAttention.relative_attention_bias.weight"]).permute(2, 0, 1)[None]
        if sdpa:
            o = F.scaled_dot_product_attention(q, k, v, attn_mask=bias.contiguous(), scale=1.0)
        else:
            o = torch.matmul(F.softmax((q @ k.transpose(2, 3) + bias).float(), -1).to(x.dtype), v)
        x = x + F.linear(o.transpose(1, 2).reshape(b, n, -1), w[p + "SelfAttention.o.weight"])
        y = norm(x, w[f + "layer_norm.weight"])
        h = F.gelu(F.linear(y, w[f + "DenseReluDense.wi_0.weight"]), approximate="tanh")
        h = h * F.linear(y, w[f + "DenseReluDense.wi_1.weight"])
        x = x + F.linear(h, w[f + "DenseReluDense.wo.weight"])
    return norm(x, w["encoder.final_layer_norm.weight"])


def ids_of(n):
    ids = (torch.arange(n) * 7919 + 13) % (VOCAB - 2) + 2
    ids[-1] = 1
    return ids


@torch.inference_mode()
def run(path, rows=None, tokens=512):
    w = load(path)
    index = buckets(512)
    for batch in 1, 8:
        ids = ids_of(512).repeat(batch, 1)
        for sdpa in False, True:
            for fetch in False, True:
                times = []
                for turn in range(13):
                    torch.cuda.synchronize()
                    start = time.perf_counter()
                    y = encode(w, ids.cuda(), index, sdpa)
                    y = y.float().cpu() if fetch else y
                    torch.cuda.synchronize()
                    times.append(time.perf_counter() - start)
                times = times[3:]
                print(f"torch {torch.__version__} batch {batch} {'sdpa' if sdpa else 'plain'}{', rows to the host' if fetch else ''}: "
                      f"mean {sum(times) / len(times) * 1e3:.2f} ms, best {min(times) * 1e3:.2f} ms")
    if rows:
        got = torch.from_file(rows, size=int(tokens) * DIM).view(-1, DIM).cuda()
        ids = ids_of(int(tokens))[None].cuda()
        half = encode(w, ids, buckets(int(tokens)), True)[0].float()
        del index
        wide = {k: v.float() for k, v in w.items()}
        want = encode(wide, ids, buckets(int(tokens)), False)[0]
        for name, x in ("cairn", got), ("torch bf16", half):
            print(f"{name}: max error {((x - want).abs().max() / want.abs().max()).item():.2e} of the largest value, "
                  f"rms {((x - want).norm() / want.norm()).item():.2e}")


if __name__ == "__main__":
    {"make": make, "run": run}[sys.argv[1]](*sys.argv[2:])
