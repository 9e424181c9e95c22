"""What runs first in kelr's single file: unpacks it once, checked by hash, and hands over to kelr.

Compiled packages cannot be loaded out of a zip. This module is `__main__` in it (single_file.py puts it there), reads
``build.json`` (what it was built for) and ``files.json`` (size and SHA-256 of every file), and is written so that any
Python 3.6 or newer can read it far enough to say that it is the wrong one.
"""

import json
import os
import sys

CANNOT = 5
"""kelr's exit code for what this machine cannot do."""


def main():
    archive = os.path.dirname(os.path.abspath(__file__))
    build = json.loads(_member(archive, "build.json"))
    here = [list(sys.version_info[:2]), sys.implementation.name, sys.platform, os.uname().machine]
    if here != build["for"]:
        _refuse(
            "this file is for {}, and this is {}".format(_words(build["for"]), _words(here)),
            "run it with that Python, or build it for this one: make zipapp PYTHON=...",
        )
    site = _unpacked(archive, build["id"])
    sys.path[0] = site
    # What kelr starts (a simulated lab, for one) is Python again, and has to find the same packages.
    os.environ["PYTHONPATH"] = os.pathsep.join([site, *filter(None, [os.environ.get("PYTHONPATH")])])
    from kelr.__main__ import start as kelr  # noqa: PLC0415 - there only now

    sys.exit(kelr())


def _unpacked(archive, build):
    """The directory with this build's packages; made if it is not there, or not whole."""
    files = json.loads(_member(archive, "files.json"))
    bases = _bases()
    for base in bases:
        if _is_ours(base) and _is_whole(os.path.join(base, build), files):
            return os.path.join(base, build)
    reasons = []
    for base in bases:
        try:
            os.makedirs(base, mode=0o700, exist_ok=True)
            if _is_ours(base):
                return _unpack(archive, base, build, files)
            reasons.append(f"{base}: others may write there")
        except OSError as error:
            reasons.append(f"{base}: {error.strerror or error}")
    _refuse(
        "there is no place to unpack to{}".format("".join("; " + reason for reason in reasons)),
        "name a directory of your own with some 150 MB of room: KELR_CACHE_DIR=DIRECTORY",
    )
    return None


def _bases():
    """Where it may be unpacked, the best first."""
    given = os.environ.get("KELR_CACHE_DIR")
    if given:
        return [os.path.join(given, "single-file")]
    cache = os.environ.get("XDG_CACHE_HOME") or (os.environ.get("HOME") and os.path.join(os.environ["HOME"], ".cache"))
    import tempfile  # noqa: PLC0415 - a later start needs it only without a home

    bases = [os.path.join(cache, "kelr", "single-file")] if cache else []
    return [*bases, os.path.join(tempfile.gettempdir(), f"kelr-{os.getuid()}")]


def _is_ours(base):
    """Whether it is there, and nobody else can put files into it."""
    try:
        found = os.lstat(base)
    except OSError:
        return False
    import stat  # noqa: PLC0415

    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022


def _is_whole(directory, files):
    """Whether every file is there in its size: cleaners of temporary directories take single ones away."""
    try:
        return all(os.stat(os.path.join(directory, name)).st_size == size for name, (size, _) in files.items())
    except OSError:
        return False


def _unpack(archive, base, build, files):
    import hashlib  # noqa: PLC0415 - the first start alone needs all of this
    import shutil  # noqa: PLC0415
    import tempfile  # noqa: PLC0415
    import zipfile  # noqa: PLC0415

    if sys.stderr.isatty():
        sys.stderr.write(f"kelr: first start on this machine, unpacking to {base}\n")
    new = tempfile.mkdtemp(dir=base, prefix=".new-")
    try:
        with zipfile.ZipFile(archive) as opened:
            for name, (size, digest) in sorted(files.items()):
                try:
                    content = opened.read("site/" + name)
                except (KeyError, zipfile.BadZipFile, EOFError) as error:
                    _refuse(f"{name} in this file is damaged: {error}", "copy the file again")
                if len(content) != size or hashlib.sha256(content).hexdigest() != digest:
                    _refuse(f"{name} in this file is not what was built: its hash differs", "copy the file again")
                path = os.path.join(new, name)
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "wb") as target:
                    target.write(content)
        target = os.path.join(base, build)
        try:
            os.rename(new, target)
        except OSError:
            # Another first start was quicker, or what was there is not whole any more.
            if not _is_whole(target, files):
                shutil.rmtree(target)
                os.rename(new, target)
        return target
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _member(archive, name):
    return __loader__.get_data(os.path.join(archive, name)).decode("utf-8")


def _words(target):
    (major, minor), implementation, system, machine = target
    return f"{implementation} {major}.{minor} on {system} {machine}"


def _refuse(text, next_step):
    sys.stderr.write(f"error: {text}\n  fix: {next_step}\n")
    sys.exit(CANNOT)


if __name__ == "__main__":
    main()
