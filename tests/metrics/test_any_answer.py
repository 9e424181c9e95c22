"""Whatever JSON an endpoint answers with, it is read or refused, and nothing else happens."""

from __future__ import annotations

import json
import math
from typing import Any
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from kelr.metrics.endpoints import Answer, Found, Kind, NotHeardError
from tests.metrics.asking import body, read

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(10**400), 10**400)
    | st.floats()
    | st.sampled_from(
        ["", "1", "NaN", "success", "matrix", "kafka.server:type=ReplicaManager,name=LeaderCount", "Value"]
    )
)
JSON = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["status", "value", "request", "mbean", "attribute", "metric", "values", "data", "result"])
            | st.text(max_size=3),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


def places(document: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path to every value of a document."""
    inside = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    return [path, *(one for key, value in inside for one in places(value, (*path, key)))]


def replaced(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    """The document with another value in one place."""
    if not path:
        return value
    copied = json.loads(json.dumps(document))
    at = copied
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return copied


def read_or_refused(kind: Kind, document: Any) -> None:
    module = {Kind.JOLOKIA: "reading", Kind.SERVER: "prometheus_server"}[kind]
    answer = Answer(200, json.dumps(document).encode(), "application/json")
    with patch(f"kelr.metrics.{module}.ask", return_value=answer):
        try:
            found = read(kind)
        except NotHeardError:
            return
    assert isinstance(found, Found)
    assert all(math.isfinite(one.value) for one in found.values)


RECORDED = {
    Kind.JOLOKIA: json.loads(body("jolokia-broker.json"))[:4],
    Kind.SERVER: json.loads(body("server-vector.json")),
}
PLACES = [(kind, path) for kind, document in RECORDED.items() for path in places(document)]


@given(st.sampled_from([Kind.JOLOKIA, Kind.SERVER]), JSON)
def test_any_json(kind: Kind, document: Any) -> None:
    read_or_refused(kind, document)


@given(st.sampled_from(PLACES), JSON)
def test_a_recorded_answer_with_anything_in_one_place(place: tuple[Kind, tuple[Any, ...]], value: Any) -> None:
    kind, path = place
    read_or_refused(kind, replaced(RECORDED[kind], path, value))
