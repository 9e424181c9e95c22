"""The demo's closing table: what is not known stays unknown in every format and in the sum."""

from __future__ import annotations

import io
import json
from dataclasses import replace

from kelr.engine import decide
from kelr.model import TopicPartition
from kelr.view.demo import COMPARISON_VIEW, Comparison, comparison_in_words
from kelr.view.formats import OutputFormat
from kelr.view.output import Output
from tests.incident import INCIDENT

HEARD = next(state for state in INCIDENT.partitions if state.address == TopicPartition("orders", 1))
COUNTED = Comparison(decide(INCIDENT, HEARD))
NOT_COUNTED = Comparison(decide(replace(INCIDENT, logs={}), HEARD))


def shown(format: OutputFormat, row: Comparison) -> str:
    stdout = io.StringIO()
    with Output(stdout, io.StringIO(), format=format).listing(COMPARISON_VIEW) as listing:
        listing.add([row])
    return stdout.getvalue()


def test_a_loss_that_nobody_could_count_is_null_and_not_nothing() -> None:
    (item,) = json.loads(shown(OutputFormat.JSON, NOT_COUNTED))["items"]
    assert (item["stock_loses"], item["else_loses"]) == (None, None)
    assert "?" in shown(OutputFormat.TABLE, NOT_COUNTED).splitlines()[1].split()
    (item,) = json.loads(shown(OutputFormat.JSON, COUNTED))["items"]
    assert (item["stock_elects"], item["stock_loses"], item["else_designates"], item["else_loses"]) == (3, 19, 2, 0)


def test_the_sum_says_what_is_not_in_it() -> None:
    sentence = (
        "On 1 of {} partitions the stock election takes a replica that is not the best. It would lose 19 offsets that a"
        " live replica holds, 4 of them known to be committed. Designating the best log keeps 19 of them; bringing the"
        " awaited broker back keeps what only its disk has, too."
    )
    assert comparison_in_words([COUNTED]) == sentence.format(1)
    assert comparison_in_words([COUNTED, NOT_COUNTED]) == (
        sentence.format(2) + " What 1 of them would lose is not known, and not in these numbers."
    )
