"""What clusters are called, where whoever collected their files has put each into a folder of its own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from kelr.fleet.inputs import Input


def names_by_folder(places: Sequence[str], files: Iterable[Input]) -> dict[str, str]:
    """The name of each cluster whose files are all in one folder of a place, with no other cluster's beside them.

    Args:
        places: the inputs as the file system names them.

    Returns:
        Names by cluster id; a cluster that is spread over folders, or shares one, has none.
    """
    folders: dict[str, set[str]] = defaultdict(set)
    clusters: dict[str, set[str]] = defaultdict(set)
    for one in files:
        if one.cluster is not None:
            folder = _folder(places, one.path)
            folders[one.cluster].add(folder)
            clusters[folder].add(one.cluster)
    found = {}
    for cluster, (folder, *others) in ((cluster, sorted(all_)) for cluster, all_ in folders.items()):
        if folder and not others and len(clusters[folder]) == 1:
            found[cluster] = folder
    return found


def _folder(places: Sequence[str], path: str) -> str:
    """The folder just below the place that a file is in; empty for a file that is in no such folder."""
    for place in places:
        below = path.removeprefix(place.rstrip("/") + "/")
        if below != path and "/" in below:
            return below.partition("/")[0]
    return ""
