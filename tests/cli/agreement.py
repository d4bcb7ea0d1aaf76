#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gpu, doctor, env, diagnose and run are asked about the same machine and PyTorch, and say the same.

The large table of machines is tests/unit/rules/test_agreement.c; here the built program itself speaks, so that what it
does with the common answer (JSON, journals, the child's environment) is compared too."""

import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

CAIRN = os.environ["CAIRN"]
DATA = pathlib.Path(os.environ["CAIRN_TEST_DATA"])
MKTREE = DATA.parent / "tools/mktree.py"
WHEEL = "gfx900,gfx906,gfx908,gfx90a,gfx942,gfx1030,gfx1100,gfx1101,gfx1102,gfx1200,gfx1201"
TREES = {
    "wheel": ["--torch", "2.9.1+rocm6.4", "--hip", "6.4.43484", "--targets", WHEEL],
    "new": ["--torch", "2.12.0+rocm7.2", "--hip", "7.2.1", "--targets", WHEEL + ",gfx1151,gfx1103", "--triton", "3.5.0",
            "--flash-attn", "2.8.3"],
    "alone": ["--torch", "2.11.0+rocm7.14", "--hip", "7.14.0", "--layout", "therock", "--targets", "gfx1151"],
    "kpack": ["--torch", "2.11.0+rocm7.14", "--hip", "7.14.0", "--layout", "kpack", "--targets", "gfx1151,gfx1032"],
    "cpu": ["--torch", "2.9.1+cpu", "--hip", "none", "--targets", ""],
    "cuda": ["--torch", "2.9.1+cu128", "--hip", "none", "--cuda", "12.8", "--targets", ""],
    None: None,
}
ENVIRONMENTS = [
    {},
    {"HSA_OVERRIDE_GFX_VERSION": "11.0.0", "PYTORCH_NO_HIP_MEMORY_CACHING": "1"},
    {"HSA_OVERRIDE_GFX_VERSION": "10.3.0", "HIP_VISIBLE_DEVICES": "0"},
]
LOG = "RuntimeError: HIP error: invalid device function\n"
OVERRIDE = "HSA_OVERRIDE_GFX_VERSION"
CHIPS = [90000, 90010, 100300, 100301, 100302, 110000, 110001, 110003, 110501, 120001]
SELECTIONS = ["0", "1", "2", "0,1", "1,0", "2,1,0", "0, 1", "0,7", "9", "", "-1", "GPU-0123456789abcdef"]
STALE = ["10.3.0", "10.3.1", "11.0.0", "11.0.1", "11.5.0", "9.0.0", "gfx1031", "10.3", ""]


class Machine:
    """One capture, one PyTorch, one environment."""

    def __init__(self, tmp, root, tree, env):
        self.tmp = tmp
        self.rocm = tree not in (None, "cpu", "cuda")
        self.name = f"{root.name}, {tree or 'no'} PyTorch, {env or 'nothing set'}"
        self.options = ["--root", str(root)] + (["--torch", str(tmp / tree / "venv")] if tree else [])
        self.env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp), "LC_ALL": "C.UTF-8", "XDG_STATE_HOME": str(tmp / "state"),
                    **env}

    def ask(self, *words, options=True, env=None):
        done = subprocess.run([CAIRN, *words, *(self.options if options else self.options[:2])], env=env or self.env,
                              cwd=self.tmp, input=LOG, capture_output=True, text=True, check=False)
        if done.returncode not in (0, 1, 3):
            raise AssertionError(f"{words[0]}: exit {done.returncode}: {done.stderr}")
        return json.loads(done.stdout)

    def applied(self, plan):
        """The environment with the plan in force."""
        env = dict(self.env)
        for gone in plan["unset"]:
            env.pop(gone["name"], None)
        env.update({v["name"]: v["value"] for v in plan["set"]})
        return env

    def check(self, runs):
        gpu = self.ask("gpu", "--json", options=False)
        doctor = self.ask("doctor", "--json")
        plan = self.ask("env", "--json")
        wanted = {v["name"]: v["value"] for v in plan["set"]}
        findings = {c["id"]: c for c in doctor["checks"]}
        yield from self.check_gpu(gpu, findings, plan)
        yield from self.check_doctor(doctor, findings, plan, wanted)
        yield from self.check_diagnosis(plan, wanted, findings)
        env = self.applied(plan)
        again = self.ask("env", "--json", env=env)
        if again["set"] or again["unset"]:
            yield f"a second plan still changes {[v['name'] for v in again['set'] + again['unset']]}"
        if runs and len(self.options) > 2: # without --torch, run goes by the command, of which env knows nothing
            yield from self.check_run(plan, env)

    def check_gpu(self, gpu, findings, plan):
        memory = findings.get("gpu-memory")
        usable = gpu["gpus"][0]["usable_bytes"] if len(gpu["gpus"]) == 1 else None
        if len(gpu["gpus"]) == 1 and memory and (memory["status"] == "unknown") != (usable is None):
            yield f"usable memory: gpu says {usable}, doctor {memory['fact']}"
        for g in gpu["gpus"]:
            if g["usable_bytes"] is not None and g["vram_total_bytes"] and g["kind"] == "discrete" \
                    and g["usable_bytes"] > g["vram_total_bytes"]:
                yield "more memory is usable than there is"
        if gpu["default_gpu"] != plan["gpu"] and not any("VISIBLE" in name for name in self.env):
            yield f"default GPU {gpu['default_gpu']}, planned for {plan['gpu']}"

    def check_doctor(self, doctor, findings, plan, wanted):
        broken = any(c["status"] == "fail" for c in doctor["checks"])
        if broken != (doctor["verdict"] == "broken"):
            yield f"verdict {doctor['verdict']}, failures: {broken}"
        planned = findings.get("env-planned", {"status": "ok"})["status"]
        if plan["gpu"] is not None and (planned == "ok") != (not wanted):
            yield f"env sets {sorted(wanted)}, and env-planned is {planned}"
        names = {v["name"] for v in plan["unset"]}
        for check in doctor["checks"]:
            for line in (check["remedy"] or "").split("\n"):
                name = line.split(" ")[-1].split("=")[0]
                if line.startswith("export ") and name not in wanted:
                    yield f"{check['id']}: {line}, which env does not set"
                if line.startswith("unset ") and name not in names:
                    yield f"{check['id']}: {line}, which env keeps"
        override = findings["override"]["status"]
        if any(name.startswith(OVERRIDE) for name in names) != (override != "ok"):
            yield f"override is {override}, and env removes {sorted(names)}"
        if doctor["plan_cures"]:
            after = self.ask("doctor", "--json", env=self.applied(plan))
            if after["verdict"] == "broken":
                yield "the plan was to cure it, and it is broken still"

    def check_diagnosis(self, plan, wanted, findings):
        if plan["gpu"] is None or not self.rocm: # then the log is of a PyTorch that is not known
            return
        said = self.ask("diagnose", "--json", "--exit", "1", "-")
        overrides = {name: value for name, value in wanted.items() if name.startswith(OVERRIDE)}
        offers = [{name: value for name, value in f["set"].items() if name.startswith(OVERRIDE)} for f in said["fix"]]
        for offer in offers:
            if offer and offer != overrides:
                yield f"diagnose ({said['class']}) offers {offer}, env sets {overrides}"
        if overrides and overrides not in offers:
            yield f"diagnose ({said['class']}) does not offer {overrides}"
        gone = [v["name"] for v in plan["unset"] if v["name"].startswith(OVERRIDE)]
        taken = {name for f in said["fix"] for name in (*f["unset"], *f["set"])}
        typed = {word for f in said["fix"] for line in f["text"].split("\n") if line.startswith("unset ") for word in line.split()}
        # What ran on the integrated GPU did not get as far as the card's override.
        if findings["override"]["status"] == "fail" and len(gone) == 1 and said["class"] != "wrong-gpu" \
                and gone[0] not in taken | typed:
            yield f"diagnose ({said['class']}) keeps {gone[0]}, without which env does"

    def check_run(self, plan, env):
        shutil.rmtree(self.tmp / "state", ignore_errors=True)
        done = subprocess.run([CAIRN, "run", "--no-preflight", "--preload=none", *self.options, "--", "env", "-0"],
                              env=self.env, cwd=self.tmp, capture_output=True, text=True, check=False)
        got = dict(line.split("=", 1) for line in done.stdout.split("\0") if "=" in line)
        for name in set(got) | set(env):
            if got.get(name) != env.get(name) and not name.startswith("CAIRN_"):
                yield f"run gives {name}={got.get(name)}, env means {env.get(name)}"
        journal = next((self.tmp / "state/cairn/runs").iterdir()) / "env"
        lines = journal.read_text(encoding="utf-8").split("\n")
        for v in plan["set"]:
            if f"export {v['name']}='{v['value']}'" not in lines:
                yield f"the journal does not have {v['name']}"


def captures():
    return sorted(DATA.glob("sysfs/*")) + sorted(DATA.glob("sysfs-synthetic/*"))


def add_card(root, node, chip):
    """One more GPU, beside those of the capture, as the first but for its chip."""
    nodes, drm = root / "sys/class/kfd/kfd/topology/nodes", root / "sys/class/drm"
    shutil.copytree(nodes / "1", nodes / str(node))
    shutil.copytree(drm / "renderD128", drm / f"renderD{127 + node}")
    (nodes / str(node) / "gpu_id").write_text(f"{1000 + node}\n", encoding="utf-8")
    changes = {"gfx_target_version": chip, "drm_render_minor": 127 + node, "location_id": 768 * node}
    properties = nodes / str(node) / "properties"
    lines = [line.split() for line in properties.read_text(encoding="utf-8").splitlines()]
    properties.write_text("".join(f"{name} {changes.get(name, value)}\n" for name, value in lines), encoding="utf-8")


def machines_at_random(tmp):
    """Several GPUs of any chips, selections with mistakes, and overrides that other machines left behind."""
    rng = random.Random(1)
    trees = [tree for tree in TREES if tree not in (None, "cpu", "cuda")]
    for i in range(40):
        root = tmp / f"several-{i}"
        shutil.copytree(DATA / "sysfs-synthetic/gfx1031-gfx1036-rx6750xt-plus-igpu", root)
        for node in range(3, 3 + rng.randrange(3)):
            add_card(root, node, rng.choice(CHIPS))
        env = {}
        for name in ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"):
            if rng.random() < 0.4:
                env[name] = rng.choice(SELECTIONS)
        for name in (OVERRIDE, f"{OVERRIDE}_1", f"{OVERRIDE}_{rng.randrange(5)}"):
            if rng.random() < 0.3:
                env[name] = rng.choice(STALE)
        yield Machine(tmp, root, rng.choice(trees), env)


def machines(tmp):
    for i, root in enumerate(captures()):
        # Every capture meets a third of the pairs, all of them together each pair several times.
        pairs = [(tree, env) for tree in TREES for env in ENVIRONMENTS]
        for tree, env in pairs[i % 3::3]:
            yield Machine(tmp, root, tree, env)
    yield from machines_at_random(tmp)


def main():
    tmp = pathlib.Path(tempfile.mkdtemp())
    bad = asked = 0
    try:
        for name, words in TREES.items():
            if name:
                subprocess.run([sys.executable, str(MKTREE), str(tmp / name), *words], check=True, stdout=subprocess.DEVNULL)
        for machine in machines(tmp):
            asked += 1
            for flaw in machine.check(runs=asked % 4 == 0):
                bad += 1
                print(f"# {machine.name}: {flaw}")
    finally:
        shutil.rmtree(tmp)
    print(f"# {asked} machines")
    print(f"{'not ok' if bad or not asked else 'ok'} 1 - the commands agree\n1..1")


main()
