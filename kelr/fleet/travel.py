"""kelr's own code on its way to Spark's workers, and whether their Python can run it.

Workers of a cluster have whatever Python somebody has put there. kelr itself is sent along with the session, as this
process has it; what it needs beside that (pyarrow, pydantic and so on) has to be there, and is looked for first.
"""

from __future__ import annotations

import re
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import kelr
from kelr.errors import UnsupportedError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

_SENT = "kelr.sent"
"""A setting of the session: which version of kelr its workers were sent."""
WORKERS_IMPORT = ("google_crc32c", "numpy", "pydantic", "kelr.fleet.merging", "kelr.fleet.assess.deciding")
"""What tasks run, and what they load only for some inputs."""
_TASKS = 8
_THIS = f"{sys.version_info.major}.{sys.version_info.minor}"
RECIPE = (
    "send a Python along: pip install venv-pack; venv-pack -o kelr-env.tar.gz; and to the command --conf"
    " spark.archives=kelr-env.tar.gz#env --conf spark.pyspark.python=./env/bin/python. Or install 'kelr[fleet]' in a"
    f" Python {_THIS} on each of them: --conf spark.pyspark.python=/path/to/python"
)
_MISSING = re.compile(r"No module named '?([\w.]+)|package pyarrow|PyArrow >=")
_OTHER_VERSION = re.compile(r"PYTHON_VERSION_MISMATCH|different version")
_NO_PYTHON = re.compile(r'Cannot run program "([^"]+)"')


def send(session: SparkSession) -> None:
    """Send kelr to the workers of a cluster, once in a session, and see whether they can run it.

    Raises:
        UnsupportedError: their Python lacks something, or is another version than this one.
    """
    from pyspark import SparkFiles  # noqa: PLC0415 - of an extra, and slow to load
    from pyspark.sql.utils import is_remote  # noqa: PLC0415

    if session.conf.get(_SENT, None) == kelr.__version__:
        return
    if is_remote():
        with tempfile.TemporaryDirectory(prefix="kelr-") as place:
            session.addArtifacts(str(packed(Path(place))), pyfile=True)
    elif re.match(r"local($|\[)", session.sparkContext.master or "") is not None:
        return  # workers are of this machine, with the Python that runs this
    else:
        # There it stays until the session ends: workers that come later fetch it, too.
        folder = Path(SparkFiles.getRootDirectory(), "kelr-sent")
        folder.mkdir(exist_ok=True)
        session.sparkContext.addPyFile(str(packed(folder)))
    _check(session)
    session.conf.set(_SENT, kelr.__version__)


def packed(place: Path) -> Path:
    """kelr as this process has it, in an archive that Python imports from."""
    archive = place / f"kelr-{kelr.__version__}.zip"
    root = Path(kelr.__file__).parent
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for path in sorted(root.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                file.write(path, path.relative_to(root.parent))
    return archive


def _check(session: SparkSession) -> None:
    try:
        session.range(0, _TASKS, 1, _TASKS).mapInArrow(_loaded, "nothing string").collect()
    except Exception as error:
        why = why_not(str(error))
        if why is None:
            raise
        raise UnsupportedError(f"Spark's workers cannot run kelr: {why}", next_step=RECIPE) from error


def why_not(said: str) -> str | None:
    """What an error of a worker says of its Python; None: nothing."""
    missing = _MISSING.search(said)
    if missing is not None:
        return f"their Python has no {missing[1] or 'pyarrow'}"
    program = _NO_PYTHON.search(said)
    if program is not None:
        return f"there is no {program[1]} on them"
    return None if _OTHER_VERSION.search(said) is None else f"their Python is not a {_THIS}, which this one is"


def _loaded(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _ in batches:
        for name in WORKERS_IMPORT:
            import_module(name)
    yield from ()
