# SPDX-License-Identifier: BSD-2-Clause
"""What the clients send to.  A broker gives each run a topic of its own, and
says afterwards how many records came, from its own counting."""

import os
import re
import signal
import subprocess

from harness.clients import Void

TOPIC = "compare"


class Embedded:
    """kp-broker: a new process for each run."""

    name = "embedded"

    def __init__(self, build, nodes=3):
        self.program = os.path.join(build, "test/broker/kp-broker")
        self.nodes = nodes
        self.process = None

    def start(self):
        pass

    def begin(self, workload):
        return self.begin_with(workload.partitions)

    def begin_with(self, partitions):
        self.process = subprocess.Popen(
            [self.program, "--nodes", str(self.nodes), "--discard",
             "--auto-create", "false", "--set", "message.max.bytes=4194304",
             "--topic", f"{TOPIC}:{partitions}"],
            stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        line = self.process.stdout.readline()
        if not line.startswith("bootstrap "):
            raise Void("the embedded broker does not start")
        return line.split()[1], TOPIC

    def silence(self):
        """From now on it answers nothing, and its sockets stay open."""
        self.process.send_signal(signal.SIGSTOP)

    def kill(self):
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None

    def end(self):
        """Records, and the bytes of their batches."""
        if self.process is None:
            return 0, None
        self.process.terminate()
        said = self.process.communicate()[0]
        self.process = None
        found = re.search(r"records (\d+) batches \d+ bytes (\d+)", said)
        return (int(found[1]), int(found[2])) if found else (0, None)

    def forget(self):
        """The run is void."""
        self.end()

    def stop(self):
        self.end()


class Kafka:
    """One node of real Kafka: one process for all runs."""

    name = "kafka"

    def __init__(self, tool, jars, folder):
        self.tool = tool
        self.environment = dict(os.environ, CLUSTER=folder, KP_KAFKA=jars)
        self.address = None
        self.topic = None
        self.number = 0

    def _call(self, *words, limit_s=120):
        try:
            return subprocess.run(
                [self.tool, *words], env=self.environment, check=True,
                stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
                timeout=limit_s).stdout.strip()
        except (OSError, subprocess.SubprocessError) as error:
            raise Void(f"kafka {words[0]}: {error}") from None

    def start(self):
        self.address = self._call("start")

    def begin(self, workload):
        self.number += 1
        topic = f"{TOPIC}-{self.number}"
        self._call("create", topic, str(workload.partitions))
        self.topic = topic
        return self.address, topic

    def end(self):
        if self.topic is None:
            return 0, None
        topic, self.topic = self.topic, None
        records = int(self._call("records", topic))
        self._call("delete", topic)
        return records, None

    def forget(self):
        """The run is void, and its topic may stay."""
        self.topic = None

    def stop(self):
        self._call("stop")
