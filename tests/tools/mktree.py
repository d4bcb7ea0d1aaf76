#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a tree that looks like a machine with PyTorch and ROCm, for tests and benches.

    mktree.py DIR --torch 2.9.1+rocm6.4 --hip 6.4.43484 --targets gfx1030,gfx1100

writes DIR/venv/lib/python3.11/site-packages/torch/... with valid ELF files: the list of targets as text in
libtorch_python.so, code objects for them in libtorch_hip.so.  `cairn doctor --root DIR` finds it.  With --big
the files have their true sizes, as sparse files.  Only Python's standard library is used."""

import argparse
import os
import pathlib
import struct
import sys
import zlib

MIB = 1 << 20
PAGE = 4096
MACHINE_X86_64 = 62
MACHINE_AMDGPU = 224

# EF_AMDGPU_MACH, as far as the trees use it.
MACH = {
    "gfx900": 0x2C, "gfx906": 0x2F, "gfx908": 0x30, "gfx90a": 0x3F, "gfx942": 0x4C, "gfx950": 0x4F,
    "gfx1030": 0x36, "gfx1031": 0x37, "gfx1032": 0x38, "gfx1100": 0x41, "gfx1101": 0x46, "gfx1102": 0x47,
    "gfx1103": 0x44, "gfx1150": 0x43, "gfx1151": 0x4A, "gfx1200": 0x48, "gfx1201": 0x4E,
}
# The directories that AOTriton keeps its images in.
AOTRITON_FAMILY = {"gfx110": "gfx110x", "gfx115": "gfx115x", "gfx120": "gfx120x"}


def align(n, to):
    return -(-n // to) * to


class Blob:
    """Bytes with holes: pieces at offsets, zero elsewhere."""

    def __init__(self, data=b"", size=0):
        self.pieces = [(0, data)] if data else []
        self.size = max(len(data), size)

    def put(self, at, data):
        self.pieces.append((at, data))
        self.size = max(self.size, at + len(data))

    def put_blob(self, at, other):
        for offset, data in other.pieces:
            self.pieces.append((at + offset, data))
        self.size = max(self.size, at + other.size)

    def write(self, path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "wb") as f:
            for at, data in self.pieces:
                f.seek(at)
                f.write(data)
            f.truncate(self.size)


def elf(sections, machine=MACHINE_X86_64, flags=0, needed=()):
    """A shared library of (name, Blob) sections."""
    out = Blob()
    rows = [("", 0, 0, 0, 0)]  # name, type, offset, size, link
    sections = [(name, 1, blob) for name, blob in sections]
    if needed:
        strings = b"\0" + b"".join(n.encode() + b"\0" for n in needed)
        offsets = [strings.index(n.encode() + b"\0") for n in needed]
        dynamic = b"".join(struct.pack("<QQ", 1, o) for o in offsets) + struct.pack("<QQ", 0, 0)
        sections += [(".dynstr", 3, Blob(strings)), (".dynamic", 6, Blob(dynamic))]
    at = 64
    for name, kind, blob in sections:
        at = align(at, PAGE if name == ".hip_fatbin" else 16)
        out.put_blob(at, blob)
        link = len(rows) - 1 if kind == 6 else 0
        rows.append((name, kind, at, blob.size, link))
        at += blob.size
    names = b"\0" + b"".join(r[0].encode() + b"\0" for r in rows[1:]) + b".shstrtab\0"
    rows.append((".shstrtab", 3, at, len(names), 0))
    out.put(at, names)
    at = align(at + len(names), 8)
    headers = b""
    for name, kind, offset, size, link in rows:
        where = names.index(name.encode() + b"\0") if name else 0
        headers += struct.pack("<IIQQQQIIQQ", where, kind, 0, 0, offset, size, link, 0, 1, 0)
    out.put(at, headers)
    ident = b"\x7fELF\x02\x01\x01" + (b"\x40\x03" if machine == MACHINE_AMDGPU else b"\0\0") + b"\0" * 7
    out.put(0, ident + struct.pack("<HHIQQQIHHHHHH", 3, machine, 1, 0, 0, at, flags, 64, 0, 0, 64, len(rows),
                                   len(rows) - 1))
    return out


def code_object(target):
    return elf([(".text", Blob(b"\0\0\x80\xbf"))], MACHINE_AMDGPU, MACH.get(target, 0x2C))


def bundle(targets, size=0):
    """A plain offload bundle; each target gets a share of `size` bytes."""
    ids = ["host-x86_64-unknown-linux-gnu-"] + ["hipv4-amdgcn-amd-amdhsa--" + t for t in targets]
    table = sum(24 + len(i) for i in ids) + 32
    share = max(PAGE, align(size // max(1, len(targets)), PAGE))
    out = Blob()
    head = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(ids))
    first = align(table, PAGE)
    for n, name in enumerate(ids):
        offset, length = (first, 0) if n == 0 else (first + (n - 1) * share, share)
        head += struct.pack("<QQQ", offset, length, len(name)) + name.encode()
    out.put(0, head)
    for n, target in enumerate(targets):
        out.put_blob(first + n * share, code_object(target.split(":")[0]))
    out.size = first + len(targets) * share
    return out


def flat(blob):
    data = bytearray(blob.size)
    for at, piece in blob.pieces:
        data[at:at + len(piece)] = piece
    return bytes(data)


def zstd_frames(data, unpacked, packed):
    """Valid zstd by hand: a frame of `data` in raw blocks and of zeros up to `unpacked` bytes in run-length
    blocks, then a frame to be skipped, a hole up to `packed` bytes."""
    unpacked = max(unpacked, len(data))
    body, done = struct.pack("<IBI", 0xFD2FB528, 0xA0, unpacked), 0
    while True:
        raw = done < len(data)
        n = min(128 * 1024, (len(data) if raw else unpacked) - done)
        last = done + n == unpacked
        body += struct.pack("<I", last | (not raw) << 1 | n << 3)[:3] + (data[done:done + n] if raw else b"\0")
        done += n
        if last:
            break
    if len(body) + 8 >= packed:
        return Blob(body)
    return Blob(body + struct.pack("<II", 0x184D2A50, packed - len(body) - 8), packed)


def pack(blob, kind, size=0):
    """Compresses a plain bundle: "plain", "ccob1", "ccob2" or "ccob3", "-zlib" behind it for zlib.  `size` is
    the least that it takes in the file."""
    if kind == "plain":
        blob.size = max(blob.size, size)
        return blob
    version, method = int(kind[4]), 0 if kind.endswith("-zlib") else 1
    data = flat(blob)
    unpacked = max(len(data), 4 * size if method else 0)
    body = zstd_frames(data, unpacked, size) if method else Blob(zlib.compress(data))
    head = b"CCOB" + struct.pack("<HH", version, method)
    if version == 1:
        head += struct.pack("<IQ", unpacked, 0)
    elif version == 2:
        head += struct.pack("<IIQ", 24 + body.size, unpacked, 0)
    else:
        head += struct.pack("<QQQ", 32 + body.size, unpacked, 0)
    out = Blob(head)
    out.put_blob(len(head), body)
    return out


def fatbin(targets, kind, count=1, size=0):
    """`count` bundles one after the other, each on a page of its own."""
    out = Blob()
    for _ in range(count):
        out.put_blob(align(out.size, PAGE), pack(bundle(targets), kind, size))
    return out


def hip_library(targets, kind, count=1, size=0):
    wrapper = Blob(struct.pack("<IIQQ", 0x48495046, 1, 0, 0) * count)
    return elf([(".rodata", Blob(b"torch\0")), (".hipFatBinSegment", wrapper),
                (".hip_fatbin", fatbin(targets, kind, count, size))], needed=["libamdhip64.so.6", "libc.so.6"])


def split_library():
    ref = b"\x82" + b"\xabkernel_name" + b"\xb1lib/libtorch_hip" + b"\xb2kpack_search_paths" + b"\x90"
    return elf([(".rodata", Blob(b"torch\0")), (".hipFatBinSegment", Blob(struct.pack("<IIQQ", 0x4B504948, 1, 0, 0))),
                (".hip_fatbin", Blob(size=PAGE)), (".rocm_kpack_ref", Blob(ref))], needed=["libamdhip64.so.7"])


def msgpack(value):
    """Enough MessagePack for a table of contents."""
    if isinstance(value, int):
        return struct.pack(">BI", 0xCE, value)
    if isinstance(value, str):
        raw = value.encode()
        return struct.pack(">BB", 0xD9, len(raw)) + raw
    if isinstance(value, list):
        return struct.pack(">BH", 0xDC, len(value)) + b"".join(map(msgpack, value))
    return struct.pack(">BH", 0xDE, len(value)) + b"".join(msgpack(k) + msgpack(v) for k, v in value.items())


def kpack(target):
    toc = msgpack({"format_version": 1, "group_name": "torch", "gfx_arch_family": target,
                   "toc": {"lib/libtorch_hip.so": {target: {"type": "hsaco", "ordinal": 0}}},
                   "gfx_arches": [target], "compression_scheme": "none"})
    return Blob(b"KPAK" + struct.pack("<IQ", 1, 64) + b"\0" * 48 + toc)


def text(path, words):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(words)


def dist_info(site, name, version, record=""):
    folder = site / f"{name}-{version}.dist-info"
    text(folder / "METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    text(folder / "RECORD", record)


def version_py(o):
    def line(name, value):
        value = "None" if value is None else repr(value)
        return f"{name}: Optional[str] = {value}\n" if o.annotated else f"{name} = {value}\n"

    head = "from typing import Optional\n\n" if o.annotated else ""
    head += "__all__ = ['__version__', 'debug', 'cuda', 'git_version', 'hip', 'xpu']\n" if o.annotated else ""
    return (head + f"__version__ = {o.torch!r}\ndebug = False\n" + line("cuda", o.cuda)
            + "git_version = '0123456789abcdef0123456789abcdef01234567'\n" + line("hip", o.hip) + line("xpu", None))


def tensile(folder, targets, count):
    """`count` files of kernels, and the index of each target."""
    folder.mkdir(parents=True, exist_ok=True)
    for target in targets:
        text(folder / f"TensileLibrary_lazy_{target}.dat", "")
        text(folder / f"Kernels.so-000-{target}.hsaco", "")
    text(folder / "TensileLibrary_Type_HH_Contraction_l_Ailk_Bjlk_Cijk_Dijk_fallback.dat", "")
    for n in range(max(0, count - 2 * len(targets))):
        target = targets[n % len(targets)]
        (folder / f"TensileLibrary_Type_HS_HPA_Contraction_l_Ailk_Bjlk_Cijk_Dijk_{n:05}_{target}.co").touch()


def math_libraries(prefix, o, libs):
    if "rocblas" in libs:
        tensile(prefix / "lib/rocblas/library", libs["rocblas"], 1500 if o.big else 0)
    if "hipblaslt" in libs:
        tensile(prefix / "lib/hipblaslt/library", libs["hipblaslt"], 3000 if o.big else 0)
    for target in libs.get("miopen", []):
        text(prefix / f"share/miopen/db/{target}_36.HIP.fdb.txt", "")
        text(prefix / f"share/miopen/db/{target}68.db.txt", "")


def aotriton(lib, targets, version):
    for target in targets:
        family = AOTRITON_FAMILY.get(target[:6], target)
        text(lib / f"aotriton.images/amd-{family}/flash/attn_fwd/FONLY__bf16.aks2", "")
    if targets and version:
        text(lib / f"libaotriton_v2.so.{version}", "")


def torch_libraries(torch, o, libs):
    lib = torch / "lib"
    words = b"" if o.no_arch_string else " ".join(o.targets).encode()
    strings = Blob(size=8 * MIB if o.big else 0)
    strings.put(strings.size, b"\0_cuda_getArchFlags\0" + words + b"\0more\0")
    python = elf([(".rodata", strings), (".text", Blob(size=22 * MIB if o.big else 64))])
    python.write(lib / "libtorch_python.so")
    elf([(".text", Blob(size=400 * MIB if o.big else 64))]).write(lib / "libtorch_cpu.so")
    if o.hip is None:
        return
    if o.layout == "kpack":
        split_library().write(lib / "libtorch_hip.so")
    else:
        count, size = (400, 3 * MIB + MIB // 2) if o.big else (o.bundles, 0)
        hip_library(o.targets, o.bundle, count, size).write(lib / "libtorch_hip.so")
    aotriton(lib, libs.get("aotriton", []), o.aotriton)
    if o.layout == "wheel":
        elf([(".text", Blob(size=64))]).write(lib / "libamdhip64.so")
        math_libraries(torch, o, libs)


def therock_wheels(site, o, libs):
    text(site / "torch/_rocm_init.py", "def initialize():\n    pass\n")
    version = o.rocm or ".".join((o.hip or "7.0").split(".")[:2]) + ".0"
    dist_info(site, "rocm", version)
    dist_info(site, "rocm_sdk_core", version)
    dist_info(site, "rocm_sdk_libraries", version)
    core = site / "_rocm_sdk_core"
    elf([(".text", Blob(size=64))]).write(core / "lib/libamdhip64.so.7")
    text(core / ".info/version", version + "\n")
    text(core / "share/therock/therock_manifest.json",
         f'{{"rocm_version": "{version}", "rocm_package_version": "{version}"}}\n')
    text(core / "bin/rocminfo", "#!/bin/sh\n")
    math_libraries(site / "_rocm_sdk_libraries", o, libs)
    if o.layout != "kpack":
        return
    for target in o.device:
        name = f"torch/.kpack/torch_{target}.kpack"
        dist_info(site, f"amd_torch_device_{target}", o.torch, f"{name},sha256=0,{PAGE}\n")
        dist_info(site, f"rocm_sdk_device_{target}", version)
        kpack(target).write(site / name)


def packages(site, o):
    for spec in o.bnb:
        version, names, targets = (spec.split(":") + ["", ""])[:3]
        dist_info(site, "bitsandbytes", version)
        text(site / "bitsandbytes/__init__.py", "")
        for name in filter(None, names.split("+")):
            hip_library(targets.split(","), o.bundle).write(site / f"bitsandbytes/libbitsandbytes_{name}.so")
    if o.triton:
        dist_info(site, o.triton_name, o.triton)
        text(site / "triton/__init__.py", f"__version__ = '{o.triton}'\n")
        text(site / "triton/backends/amd/compiler.py", "")
        text(site / "triton/backends/nvidia/compiler.py", "")
    if o.flash_attn:
        version, kind = (o.flash_attn.split(":") + ["rocm"])[:2]
        dist_info(site, "flash_attn", version)
        text(site / "flash_attn/__init__.py", "")
        extension = site / "flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so"
        if kind == "rocm":
            hip_library(o.targets, o.bundle).write(extension)
        elif kind == "cuda":
            elf([(".nv_fatbin", Blob(b"x"))], needed=["libcudart.so.12"]).write(extension)
    if o.accelerate:
        dist_info(site, "accelerate", o.accelerate)
        text(site / "accelerate/__init__.py", "")


def rocm(root, o, libs):
    prefix = root / f"opt/rocm-{o.rocm}"
    major, minor, patch = (o.rocm.split(".") + ["0", "0"])[:3]
    number = int(major) * 10000 + int(minor) * 100 + int(patch)
    text(prefix / ".info/version", o.rocm + "-83\n")
    name = f"libamdhip64.so.{major}.{minor}.{number}"
    elf([(".text", Blob(size=64))]).write(prefix / "lib" / name)
    link(prefix / f"lib/libamdhip64.so.{major}", name)
    text(prefix / f"lib/libMIOpen.so.1.0.{number}", "")
    text(prefix / "bin/rocminfo", "#!/bin/sh\n")
    math_libraries(prefix, o, libs)
    link(root / "opt/rocm", f"rocm-{o.rocm}")


def link(path, to):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.symlink_to(to)


def interpreter(root, o):
    """The Python of the tree; gives its site-packages directory."""
    if o.layout == "debian":
        text(root / f"usr/bin/python{o.python}", "\x7fELF")
        os.chmod(root / f"usr/bin/python{o.python}", 0o755)
        link(root / "usr/bin/python3", f"python{o.python}")
        return root / "usr/lib/python3/dist-packages"
    venv = root / "venv"
    text(venv / "pyvenv.cfg", "home = /usr/bin\ninclude-system-site-packages = false\n"
         f"version = {o.python}.2\n")
    link(venv / "bin/python3", "/usr/bin/python3")
    return venv / f"lib/python{o.python}/site-packages"


def parse_libs(words, targets):
    if words == "none":
        return {}
    libs = {name: targets for name in ("rocblas", "hipblaslt", "miopen", "aotriton")}
    libs["aotriton"] = [t for t in targets if t.startswith(("gfx11", "gfx12", "gfx90a", "gfx94", "gfx95"))]
    for part in filter(None, words.split(",")):
        name, _, value = part.partition("=")
        if name not in libs:
            sys.exit(f"mktree.py: --libs has no library {name!r}")
        libs[name] = [t for t in value.split("+") if t]
    return libs


def options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("dir", type=pathlib.Path)
    p.add_argument("--torch", default="2.9.1+rocm6.4", help="version")
    p.add_argument("--hip", default="6.4.43484", help="torch's HIP version, or none")
    p.add_argument("--cuda", help="torch's CUDA version")
    p.add_argument("--targets", default="gfx900,gfx906,gfx1030,gfx1100")
    p.add_argument("--layout", choices=["wheel", "therock", "kpack", "debian"], default="wheel")
    p.add_argument("--big", action="store_true", help="true sizes, as sparse files")
    p.add_argument("--libs", default="", help="rocblas=gfx1030+gfx1100,hipblaslt=…,miopen=…,aotriton=…, or none")
    p.add_argument("--device", help="targets of the device wheels (kpack); all targets unless given")
    p.add_argument("--bnb", action="append", default=[], help="VERSION:rocm64+rocm63:gfx1100,gfx1101")
    p.add_argument("--triton", help="version")
    p.add_argument("--triton-name", default="triton", help="name of its distribution")
    p.add_argument("--flash-attn", help="VERSION[:rocm|cuda|none]")
    p.add_argument("--accelerate", help="version")
    p.add_argument("--aotriton", help="version in the library's file name")
    p.add_argument("--rocm", help="version of an installation in opt/")
    p.add_argument("--bundle", default="ccob3", help="plain, ccob1, ccob2, ccob3; ccob3-zlib for zlib")
    p.add_argument("--bundles", type=int, default=3, help="how many in libtorch_hip.so")
    p.add_argument("--no-arch-string", action="store_true")
    p.add_argument("--python", default="3.11")
    p.add_argument("--plain", dest="annotated", action="store_false", help="version.py as old PyTorch writes it")
    p.add_argument("--annotated", action="store_true", default=True)
    o = p.parse_args()
    o.hip = None if o.hip == "none" else o.hip
    o.targets = [t for t in o.targets.split(",") if t]
    o.device = o.device.split(",") if o.device else o.targets
    return o


def main():
    o = options()
    libs = parse_libs(o.libs, o.targets)
    site = interpreter(o.dir, o)
    text(site / "torch/version.py", version_py(o))
    text(site / "torch/__init__.py", "")
    dist_info(site, "torch", o.torch)
    torch_libraries(site / "torch", o, libs)
    if o.layout in ("therock", "kpack"):
        therock_wheels(site, o, libs)
    packages(site, o)
    if o.rocm and o.layout not in ("therock", "kpack"):
        rocm(o.dir, o, libs)


if __name__ == "__main__":
    main()
