# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 the sinkproof authors
"""Compiles one mutated file, links the tests against it, runs them: does any notice?"""
import glob
import hashlib
import os
import pathlib
import shlex
import signal
import subprocess
import tempfile
import threading

from mutants_table import source_of
from naming import full

# Values that nobody uses any more are no reason to refuse a mutant.
LENIENT = [f"-Wno-error=unused-{what}" for what in
           ("variable", "parameter", "function", "value", "but-set-variable", "but-set-parameter", "const-variable")]
MEMORY_KB = 8 << 20
# What is freed or fresh is not zero: reading beyond an end then shows.
# Threads that wait sleep: spinning is processor time, which a busy machine makes more of than a test may take.
ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive", "MALLOC_PERTURB_": "165", "LC_ALL": "C.UTF-8"}


class Refused(Exception):
    """What must work before any mutant is made does not."""


class Stopped(Exception):
    """The run ends: what a test said that was cut off is not known."""


class Workshop:
    """Objects and programs of mutants, below a directory of their own."""

    def __init__(self, root, build, compiler, flags, libraries, spare):
        self.root, self.build = pathlib.Path(root).resolve(), pathlib.Path(build).resolve()
        self.compiler = shlex.split(compiler)
        self.flags = [f for f in shlex.split(flags) if f != "-g"] + LENIENT
        self.libraries, self.spare = shlex.split(libraries), spare
        self.place = tempfile.TemporaryDirectory(prefix="sinkproof-mutants-")
        self.work = pathlib.Path(self.place.name)
        self.lock, self.locks, self.objects, self.results, self.base, self.quick, self.asking = threading.Lock(), {}, {}, {}, {}, {}, {}
        self.serial, self.children, self.stopped = 0, set(), False
        # Later children need these even where the caller's environment differs.
        self.environment = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
        self.environment.update(ENVIRONMENT, SINKPROOF_BUILD=str(self.work), TMPDIR=str(self.work))

    def once(self, store, key, make):
        """store[key], made by the first who asks; others wait for it."""
        with self.lock:
            lock = self.locks.setdefault((id(store), key), threading.Lock())
        with lock:
            if key not in store:
                store[key] = make()
            return store[key]

    def new_name(self):
        with self.lock:
            self.serial += 1
            return self.work / f"m{self.serial}"

    def compile(self, file, text):
        """(hash of the object, path of the object), or None when the compiler refuses."""
        def make():
            folder = self.new_name()
            folder.mkdir()
            source = folder / os.path.basename(file)
            source.write_text(text, encoding="utf-8")
            object = source.with_suffix(".o")
            done = subprocess.run([*self.compiler, *self.flags, "-c", source.name, "-o", object.name,
                                   "-I", str(self.root)], cwd=folder, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE, env=self.environment)
            source.unlink()
            if done.returncode != 0:
                self.said = done.stderr.decode(errors="replace")
                return None
            return hashlib.sha256(object.read_bytes()).hexdigest(), object
        key = hashlib.sha256(f"{file}\0{text}".encode()).hexdigest()
        return self.once(self.objects, key, make)

    def link(self, test, object):
        """A test with this object in front of the archive, so that its own is not taken."""
        program = self.new_name()
        script = test.endswith((".sh", ".py"))
        main = self.build / ("audit/command/main.o" if script else f"tests/{full(self.root, test)}.o")
        # The statements' table belongs to no archive: whoever verifies needs it, the others pass over it.
        table = [str(o) for o in [self.build / "inventory.o"] if o.exists()]
        done = subprocess.run([*self.compiler, str(object), str(main), *table, str(self.build / "rooms.a"),
                               "-s", "-o", str(program), *self.libraries], stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, env=self.environment)
        if done.returncode != 0:
            raise Refused(f"{test} does not link: {done.stderr.decode(errors='replace')[-400:]}")
        return program

    def takes_ids(self, test):
        """Whether the test asks the ids on its command line alone (tests/shared/only.h)."""
        def make():
            return '"tests/shared/only.h"' in (self.root / source_of(self.root, test)).read_text(encoding="utf-8")
        return self.once(self.asking, test, make)

    def start(self, test, program, seconds, ids=()):
        """(what it said, processor seconds): "passed", or the first failure, a signal, too long."""
        script = test.endswith((".sh", ".py"))
        environment = dict(self.environment)
        command = [str(program), *ids]
        if script:
            environment["SINKPROOF"] = str(program)
            command = ["bash" if test.endswith(".sh") else "python3", str(self.root / source_of(self.root, test))]
        limits = f"ulimit -c 0 -t {seconds} -v {MEMORY_KB}; exec \"$@\""
        child = subprocess.Popen(["bash", "-c", limits, "-", *command], cwd=self.root, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment,
                                 start_new_session=True)
        with self.lock:
            self.children.add(child)
            if self.stopped:
                self.stop(child)
        watch = threading.Timer(seconds * 20 + 60, self.stop, [child])  # asleep, not busy
        watch.start()
        said = None
        for line in child.stdout:
            if line.startswith((b"not ok", b"Bail out!")):
                said = line.decode(errors="replace").strip()
                self.stop(child)
                break
        child.stdout.close()
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        watch.cancel()
        with self.lock:
            self.children.discard(child)
            stopped = self.stopped
        for left in glob.glob(f"/tmp/sinkproof-*-{child.pid}.*"):
            os.unlink(left)
        if stopped:
            raise Stopped
        if said is None and child.returncode != 0:
            said = f"exit {child.returncode}"
        return said or "passed", used.ru_utime + used.ru_stime

    @staticmethod
    def stop(child):
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass

    def stop_all(self):
        with self.lock:
            self.stopped = True
            for child in self.children:
                self.stop(child)

    def asked(self, test, ids):
        """What of the ids goes on the test's command line."""
        return tuple(sorted(ids)) if self.takes_ids(test) else ()

    def baseline(self, test, ids=()):
        """Processor seconds of a test with nothing mutated: it must pass. ids: those on its command line."""
        def make():
            script = test.endswith((".sh", ".py"))
            program = self.build / ("sinkproof" if script else f"tests/{full(self.root, test)}")
            said, used = self.start(test, program, 900, ids)
            if said != "passed":
                raise Refused(f"{test} fails with nothing mutated: {said}")
            return used
        return self.once(self.base, (test, ids), make)

    def is_quick(self, test, seconds, ids=()):
        """Does the test need at most so many processor seconds with nothing mutated?"""
        def make():
            script = test.endswith((".sh", ".py"))
            program = self.build / ("sinkproof" if script else f"tests/{full(self.root, test)}")
            said, used = self.start(test, program, int(seconds) + 1, ids)
            if said != "passed":
                return float("inf")
            return self.once(self.base, (test, ids), lambda: used)  # no second run for the baseline
        return self.once(self.quick, (test, ids, seconds), make) <= seconds

    def known_to_kill(self, test, object):
        """The whole test noticed this object before, as a mutant of another id."""
        return self.results.get((object[0], test, ()), "passed") != "passed"

    def notices(self, test, object, ids=()):
        """What the test, asked of these ids, says of the mutant; "passed" when it notices nothing."""
        def make():
            program = self.link(test, object[1])
            said, _ = self.start(test, program, int(self.baseline(test, ids) * 4) + self.spare, ids)
            program.unlink()
            return said
        return self.once(self.results, (object[0], test, ids), make)
