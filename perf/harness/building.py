# SPDX-License-Identifier: BSD-2-Clause
"""Makes what is measured, where it is not there yet."""

import datetime
import os
import platform
import subprocess
import sys


class Failed(Exception):
    pass


def say(text):
    print(text, file=sys.stderr, flush=True)


def _run(what, command, folder, log, environment=None, check=True):
    """What it prints goes to the log, but for lines that are for people."""
    say(f"{what} ...")
    with open(log, "w", encoding="utf-8") as out:
        status = subprocess.run(
            command, cwd=folder, stdout=out, stderr=out,
            stdin=subprocess.DEVNULL, check=False,
            env=dict(os.environ, **(environment or {}))).returncode
    with open(log, encoding="utf-8", errors="replace") as f:
        lines = f.readlines()
    for line in lines:
        if "is left out" in line:
            say("  " + line.strip())
    if status and check:
        sys.stderr.writelines(lines[-30:])
        raise Failed(f"{what}: status {status}")


def make_programs(root, build, programs, scratch):
    """libkp, the embedded broker and these programs."""
    jobs = f"-j{os.cpu_count() or 2}"
    log = os.path.join(scratch, "make.log")
    os.makedirs(build, exist_ok=True)
    if not os.path.exists(os.path.join(build, "Makefile")):
        _run("configure", ["make", "-C", root, "configure"], root, log)
        _run("configure", [os.path.join(root, "configure"), "-q"], build, log)
    _run("packages", ["make", "deps"], build, log)
    _run("libkp", ["make", jobs, "lib", *programs, "test/broker/kp-broker"],
         build, log)


def make(root, build, peers, names, scratch):
    """libkp, its programs, and the peers of these names."""
    log = os.path.join(scratch, "make.log")
    make_programs(root, build, ["perf/multi_thread_send"], scratch)
    if names:
        # one that does not compile is left out like one that is not there
        _run("the other clients", ["make", "peers", "P=" + " ".join(names)],
             build, log, {"KP_PEERS": peers}, check=False)


def fetch_kafka(tool, jars, scratch):
    _run("real Kafka", [tool, "deps"], ".", os.path.join(scratch, "kafka.log"),
         {"KP_KAFKA": jars})


def fetch_gnuplot(root, scratch):
    _run("gnuplot", [os.path.join(root, "perf/peers/deps"), "gnuplot"], root,
         os.path.join(scratch, "gnuplot.log"), check=False)


def machine():
    """A line about where and when this runs."""
    model = "?"
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as f:
        for line in f:
            if line.startswith("model name"):
                model = line.split(":")[1].strip()
    return (f"{datetime.date.today()}, {os.cpu_count()} x {model}, "
            f"{platform.system()} {platform.release()}, "
            f"load {os.getloadavg()[0]:.1f}")
