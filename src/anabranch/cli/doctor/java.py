"""The Java that Spark would start, and the module that it starts it with."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from anabranch.cli.doctor.finding import Finding, Request, failed, ok, trouble
from anabranch.extras import is_installed

MODULE = "jdk.incubator.vector"
SECONDS = 60


def runtime(asked: Request) -> Iterator[Finding]:
    """Java is there, new enough, and has the module without which Spark's Java process ends at once."""
    if not is_installed("pyspark"):
        return
    from anabranch.engines.spark.session.jvm import check_java

    try:
        check_java()
    except OSError as error:
        yield failed("java", error)
        return
    said = properties()
    home = os.environ.get("JAVA_HOME")
    by = "JAVA_HOME" if home else "PATH"
    yield ok("java", f"{said.get('java.version', 'there')} in {said.get('java.home', home)}, by {by}")
    if _started(f"--add-modules={MODULE}", "-version").returncode:
        yield trouble(
            "java module",
            f"Spark starts Java with {MODULE}, and this Java has no such module",
            "Install a whole JRE or JDK, such as openjdk-17-jre-headless of Debian or Ubuntu;",
            "a Java that jlink cut down for another program will not do.",
        )
    else:
        yield ok("java module", MODULE)


def properties() -> dict[str, str]:
    """What Java says about itself; nothing where there is no Java."""
    try:
        said = _started("-XshowSettings:properties", "-version")
    except (OSError, subprocess.TimeoutExpired):
        return {}
    return dict(re.findall(r"^ +(java\.[\w.]+) = (.*)$", said.stderr, re.MULTILINE))


def _started(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The Java that Spark would take, with other arguments."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java") or "java"
    return subprocess.run([java, *arguments], capture_output=True, text=True, check=False, timeout=SECONDS)
