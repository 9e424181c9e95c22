"""Histories that went wrong once, shrunk: what happened in each, and what kelr did."""

from __future__ import annotations

from collections.abc import Mapping

from tests.histories.chance import Schedule

FOUND: Mapping[str, tuple[int, Schedule]] = {
    # The journal said that a config was restored of which no line before told: no journal of the cluster could
    # be read any more.
    "Ctrl-C right before the first line of a hold, then a kill before its last": (
        0,
        {"ada's choice 0": "hold", "ada's seams 31": "Ctrl-C", "ada's seams 34": "kill"},
    ),
    # No resume and no undo closed the journal: the config of a topic that is gone cannot be read.
    "the topic of a hold is deleted while a broker sends the write twice": (
        0,
        {
            "stranger 1": [2.68, "deletes"],
            "ada's choice 0": "hold",
            "ada's config requests 0": "twice 11",
        },
    ),
    # It took a value for somebody else's that was older than its own, and left its own there, told as done.
    "a stranger writes the config of a hold shortly before, and the broker lags behind": (
        0,
        {
            "own min.insync.replicas 0": 2,
            "broker 0": [0.0, "lags", 1, 12],
            "broker 1": [0.0, "lags", 2, 12],
            "broker 2": [0.0, "lags", 3, 12],
            "stranger 0": [0.41, "configures", None],
            "ada's pauses 0": 10,
            "ada's choice 0": "hold",
        },
    ),
    # Its reordering went without an answer, so it took the old order for its own, restored, and closed the journal; the
    # other one then gave the order back that it had planned in: the temporary one.
    "a kelr of another host plans in a temporary order, and elects by the old one": (
        32293,
        {
            "layouts 0": [[3, 2, 1], [1, 3, 2]],
            "second operator 0": "desk",
            "bob's commands 0": 3,
            "bob's pauses 0": 1,
            "ada's reorder requests 0": "unanswered",
            "bob's wishes 2": 3,
            "bob's reorder requests 1": "one UNKNOWN_SERVER_ERROR",
            "bob's choice 2": "hold",
        },
    ),
    # Undo took the result of the run before, "not-tried", for that of the election, and closed the journal: no audit
    # line told of it, and consent and reason were gone.
    "Ctrl-C in an apply, then a resume that elects is killed before its audit line, then an undo": (
        1083,
        {
            "layouts 0": [[3, 1, 2], [2, 3, 1]],
            "second operator 0": "laptop",
            "bob's commands 0": 3,
            "ada's options 0": {"keep_order": True, "reads": 100},
            "bob's options 0": {"batch": 1},
            "bob's dumps 0": "then replay",
            "bob's seams 34": "Ctrl-C",
            "bob's seams 52": "kill",
            "bob's seams 117": "kill",
            "bob's choice 2": "hold",
            "mends in the end 0": "undo",
        },
    ),
    # The line was in memory only, and every later fsync took it for written: resume went on with a journal whose first
    # line the next power cut took away.
    "the disk fails at a journal's first line, and a kill comes before the line is taken back": (
        1179832,
        {"ada's dumps 0": "only", "ada's disk 20": "EIO", "ada's seams 30": "kill"},
    ),
    # It was taken to be as old as its line, which was written five minutes before it was sent: resume gave it too
    # little time, and it came when the journal was closed.
    "a hold is suspended between its line and its write, and killed before the answer": (
        1288576,
        {
            "second operator 0": "laptop",
            "broker 0": [298.43, "controller", 50],
            "broker 2": [4.94, "dies", 3],
            "stranger 1": [245.13, "configures", "1"],
            "bob's commands 0": 5,
            "bob's pauses 0": 10,
            "ada's options 0": {"reads": 1000},
            "bob's wishes 0": 1,
            "bob's choice 1": "hold",
            "bob's seams 37": "suspend by 300",
            "bob's impatience 0": ["kill", 3],
        },
    ),
    # The run counted from before it was suspended how long its request may take effect yet, and told too early that
    # its order was restored.
    "an apply is suspended right before it reorders, and Ctrl-C comes before the answer": (
        1311412,
        {
            "layouts 0": [[3, 2, 1], [1, 3, 2]],
            "second operator 0": "desk",
            "bob's wishes 0": 3,
            "ada's wishes 1": 3,
            "bob's dumps 0": "then replay",
            "bob's seams 15": "kill",
            "bob's seams 46": "suspend by 15",
            "ada's dumps 0": "then replay",
            "bob's reorder requests 0": "late 70.0",
            "bob's impatience 0": ["Ctrl-C", 0.5],
        },
    ),
    # It took the order that the run before had given and restored for the partition's own, and gave it back.
    "an apply begins while the brokers still show the order of the one that was interrupted before": (
        1281075,
        {
            "layouts 0": [[3, 1, 2], [2, 3, 1]],
            "lag of all brokers 0": 12,
            "ada's commands 0": 5,
            "ada's seams 42": "Ctrl-C",
            "ada's pauses 1": 10,
            "ada's wishes 2": 3,
        },
    ),
    # It took the stranger's order for a later one, which was there before its own, and left its own.
    "a stranger reorders right before an apply whose journal fails, and the brokers lag behind": (
        1634636,
        {
            "layouts 0": [[3, 1, 2], [2, 3, 1]],
            "lag of all brokers 0": 12,
            "stranger 0": [4.24, "reorders", 1, [1, 2, 3]],
            "ada's wishes 1": 3,
            "ada's reorder requests 0": "late 11",
            "ada's disk 24": "EIO",
        },
    ),
    # The broker asked the controller twice, and passed the second answer on, that there is no such topic any more. It
    # was taken for proof that nobody had been elected, and no audit line told of the election.
    "a topic is deleted between an election and its repetition, and a kill comes before the result": (
        1755530,
        {
            "second operator 0": "desk",
            "stranger 0": [17.94, "deletes"],
            "ada's pauses 0": 10,
            "bob's pauses 0": 10,
            "ada's choice 0": "hold",
            "bob's wishes 0": 0,
            "ada's reading 0": 10,
            "bob's elect requests 0": "twice 11",
            "bob's elect requests 1": "twice 20",
            "bob's impatience 0": ["kill", 0.5],
        },
    ),
    # The old order had been taken for one by which another kelr elects; how long it stood was counted by the clock of
    # the boot before, for ever 0, and the journal stayed open.
    "the power fails after a restore that came late was seen, which might have been another kelr's": (
        2836451,
        {
            "layouts 0": [[3, 1, 2], [2, 3, 1]],
            "lag of all brokers 0": 4,
            "ada's commands 0": 5,
            "ada's wishes 1": 3,
            "ada's seams 34": "kill",
            "ada's reorder requests 0": "error done BROKER_NOT_AVAILABLE",
            "ada's reorder requests 2": "late 20",
            "ada's seams 239": "power cut",
        },
    ),
}
