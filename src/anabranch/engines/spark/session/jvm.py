"""The Java that Spark runs on: whether there is one, one that is quiet, and its end."""

import os
import re
import shutil
import signal
import subprocess
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

OLDEST = 17
SHORT_LIVED = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.python.daemon.module": "anabranch.engines.spark.session.daemon",
}
"""Settings for a session that lives for a minute. What the optimising compiler of the JVM costs does not come
back (nine small micro-batches took 45 s of CPU without it, 62 s with), and much of a short query is what the
Python processes import as they start."""
SECONDS = 15.0
"""How long a JVM may take to end by itself."""


def check_java() -> None:
    """Raise where Spark cannot start because there is no Java for it; it looks where we do."""
    from pyspark import SparkContext

    if SparkContext._gateway is not None or "PYSPARK_GATEWAY_PORT" in os.environ:
        return
    problem = _problem()
    if problem is None:
        return
    error = OSError(f"Spark runs on Java {OLDEST} or newer, and {problem}")
    error.add_note("Install one. On Debian or Ubuntu: sudo apt-get install openjdk-17-jre-headless")
    error.add_note("On macOS: brew install openjdk@17    Anywhere: https://adoptium.net")
    error.add_note("If it is installed, set JAVA_HOME to its folder.")
    raise error


def _problem() -> str | None:
    home = os.environ.get("JAVA_HOME")
    java = shutil.which(str(Path(home, "bin", "java"))) if home else shutil.which("java")
    if java is None:
        return f"there is none in JAVA_HOME ({home})" if home else "none is in JAVA_HOME or on PATH"
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as reason:
        return f"{java} does not start: {reason}"
    found = re.search(r'version "(?:1\.)?(\d+)', said.stderr + said.stdout)
    if said.returncode or found is None:
        return f"{java} does not work"
    return f"{java} is Java {found.group(1)}" if int(found.group(1)) < OLDEST else None


def start_jvm(settings: Mapping[str, str], log: Path) -> None:
    """Start the JVM of this process with all that it and its workers say in a file; nothing if one runs.

    It is in a session of its own, so that Ctrl-C on a terminal reaches this process alone and a query can be
    stopped in order. It ends when this process does, however that ends: its standard input closes.
    """
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkRuntimeError
    from pyspark.java_gateway import launch_gateway

    if SparkContext._gateway is not None or "PYSPARK_GATEWAY_PORT" in os.environ:
        return
    conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    with log.open("ab") as file:
        options: dict[str, Any] = {"stdout": file, "stderr": file, "start_new_session": True}
        try:
            with _uninterrupted():
                gateway = launch_gateway(conf, options)  # type: ignore[no-untyped-call]
                SparkContext._ensure_initialized(gateway=gateway)  # from here on end_jvm knows of it
        except PySparkRuntimeError:
            error = OSError("Spark did not start: its Java process ended at once")
            error.add_note(f"What it said is in {log}.")
            raise error from None
    answer = signal.getsignal(signal.SIGINT)
    SparkContext(conf=conf, gateway=gateway)
    if threading.current_thread() is threading.main_thread():
        # PySpark's answer to Ctrl-C calls the JVM in the middle of another call, which cannot be.
        signal.signal(signal.SIGINT, answer)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Signals inside count after it: a JVM that is interrupted while it starts would stay for ever."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    noted: list[int] = []
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in before:
        signal.signal(number, lambda what, _frame: noted.append(what))
    try:
        yield
    finally:
        for number, answer in before.items():
            signal.signal(number, answer)
        for first in noted[:1]:
            signal.raise_signal(first)


def end_jvm() -> None:
    """End Spark and the JVM that this process started, whatever either is doing; nothing if there is none."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    if gateway is None:
        return
    process = getattr(gateway, "proc", None)
    context = SparkContext._active_spark_context
    if context is not None:
        # After Ctrl-C in the middle of a call Spark may warn that it could not stop; we end its process.
        with suppress(Exception), warnings.catch_warnings(action="ignore"):
            context.stop()
    with suppress(Exception):
        gateway.shutdown()
    SparkContext._gateway = SparkContext._jvm = None
    if process is None:
        return
    with suppress(OSError):
        process.stdin.close()
    try:
        process.wait(SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
