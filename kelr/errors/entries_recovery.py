"""Codes of what is refused or wrong on the way to an election, and after it."""

from __future__ import annotations

from kelr.errors import ExitCode
from kelr.errors.entry import Entry

RECOVERY = (
    Entry(
        "loss-not-accepted",
        ExitCode.REFUSED,
        "The elections would lose records, and nobody accepted that",
        "The plan says how many offsets are lost with the best choice that is left. Nothing was changed.",
        "--accept-loss is missing or has another number than the plan, or one without a plus where a log that was not"
        " read may hold more.",
        "Read what is lost (`kelr explain`), and whether waiting for a broker or its disk loses less. `kelr rescue"
        " dump`"
        " saves the records first. Then give --accept-loss with exactly what is named: a number, a number with a plus,"
        " or unknown.",
    ),
    Entry(
        "evidence-contradictory",
        ExitCode.REFUSED,
        "What would be lost cannot be counted",
        "The evidence is missing or contradicts itself, so that no number could be accepted. Nothing was changed.",
        "Replicas that hold more than the candidate were not heard, logs part in a way that nobody can explain, the ELR"
        " is not known, or a reassignment is under way.",
        "Get the missing log: start that broker, or read its disk with `kelr recover collect --log-dir`. Only where"
        " that"
        " is out of the question: --force with the reason, which goes into the audit log.",
    ),
    Entry(
        "consent-missing",
        ExitCode.REFUSED,
        "Nobody said yes",
        "Nothing is lost by what is planned; it changes the cluster all the same, and wants a yes. Nothing was"
        " changed.",
        "A library call or a script without the yes.",
        "Read the plan, and add --yes.",
    ),
    Entry(
        "answer-was-no",
        ExitCode.REFUSED,
        "The answer at the terminal was not the one that goes ahead",
        "Nothing was changed or produced.",
        "Enter alone means no; a loss is accepted by typing its number, a topic by typing its name.",
        "Run the same command again, and answer as the question says.",
    ),
    Entry(
        "nobody-to-ask",
        ExitCode.REFUSED,
        "There is no terminal to ask on",
        "Something has to be confirmed, and stdin or stderr is no terminal. Nothing was changed.",
        "The command runs in a script or a pipe.",
        "Run it on a terminal, or give the flag that the message names.",
    ),
    Entry(
        "reason-missing",
        ExitCode.USAGE,
        "--force wants a reason",
        "The reason goes into the audit log, for those who ask afterwards.",
        "--force was given an empty text, or the next flag for its value.",
        "Give one sentence in quotes: --force 'disk of broker 1 is lost, ticket 4711'.",
    ),
    Entry(
        "broker-not-gone",
        ExitCode.REFUSED,
        "A broker that was said to be gone is live",
        "--gone says that brokers will not come back; this one runs, and what it holds counts.",
        "Another id was meant, or the broker came back meanwhile.",
        "Plan without it in --gone.",
    ),
    Entry(
        "plan-other-cluster",
        ExitCode.REFUSED,
        "The plan is of another cluster",
        "The cluster id in the plan is not the one that answered. Nothing was changed.",
        "The flags or the context are those of another cluster.",
        "Give the connection of the plan's cluster, or plan anew here: `kelr recover plan`.",
    ),
    Entry(
        "plan-expired",
        ExitCode.REFUSED,
        "The plan is too old",
        "A plan stands on what was seen, and says how long that may be relied on. Nothing was changed.",
        "The review took longer than --expires-in, an hour unless told.",
        "Make a new plan from what is there now: the message has the command.",
    ),
    Entry(
        "plan-stale",
        ExitCode.REFUSED,
        "What the plan stood on has changed",
        "Leader, epoch, ISR, ELR, replicas or logs of some partitions are not those that the plan was made from. Those"
        " elections would be refused; nothing was changed.",
        "Brokers came or went, somebody else elected, or a reassignment began.",
        "Look at the differences that were printed, and plan those partitions again.",
    ),
    Entry(
        "plan-garbled",
        ExitCode.USAGE,
        "The plan is not as kelr writes plans",
        "A value in the file is missing, of the wrong type, or out of range; nothing of it was used.",
        "An edit went wrong: whom a plan elects may be edited, and elections may be taken out; nothing else.",
        "Undo the edit at the place that is named, or make the plan again.",
    ),
    Entry(
        "not-a-plan",
        ExitCode.USAGE,
        "The file is no plan",
        "It is JSON, and does not say that it is a plan of kelr.",
        "Another file was given, such as the output of -o json or the JSON file of Kafka's own tool.",
        "Give the file that `kelr recover plan --out` wrote; `kelr elect --path-to-json-file` takes Kafka's.",
    ),
    Entry(
        "election-file",
        ExitCode.USAGE,
        "The JSON file of elections is not as Kafka's tool has it",
        'It should hold {"partitions": [{"topic": ..., "partition": ...}]}, each partition once.',
        "A missing field, an empty list, or a partition that is named twice.",
        "Correct the entry that is named.",
    ),
    Entry(
        "another-kelr",
        ExitCode.REFUSED,
        "Another kelr is at work on this cluster",
        "It holds the lock or the journal; two at once would undo each other's steps. Nothing was changed.",
        "A colleague on the same host, or a run in another terminal that waits for an answer.",
        "Wait until it ended, then `kelr recover status`. The lock goes with its process: there is nothing to delete.",
    ),
    Entry(
        "journal-open",
        ExitCode.REFUSED,
        "An earlier run was cut short and concerns the same partitions",
        "Its journal says that something may be left half done, such as replicas in another order. Nothing was"
        " changed.",
        "kelr was killed, lost its connection, or the host went down.",
        "`kelr recover status` shows what is left; `kelr recover resume` finishes it, `kelr recover undo` takes it"
        " back.",
    ),
    Entry(
        "no-open-journal",
        ExitCode.USAGE,
        "No journal of this cluster is open",
        "No earlier run left anything to put right, as far as the state directory of this user on this host knows.",
        "The run ended well, or it was on another host, by another user, or with another KELR_STATE_DIR.",
        "`kelr recover log` tells what was done. Name the journal or the plan to undo a run that ended.",
    ),
    Entry(
        "journal-unknown",
        ExitCode.USAGE,
        "There is no journal of that name",
        "The message names the newest ones of this cluster.",
        "A slip, or a journal of another cluster or state directory.",
        "Give one of the names, its beginning, or the path of a file.",
    ),
    Entry(
        "journal-ambiguous",
        ExitCode.USAGE,
        "Several journals begin with that name",
        "The message lists them.",
        "The beginning that was given is too short.",
        "Give the whole name.",
    ),
    Entry(
        "journal-other-cluster",
        ExitCode.REFUSED,
        "The journal is of another cluster",
        "What it says must not be undone here. Nothing was changed.",
        "The flags or the context are those of another cluster.",
        "Give the connection of the journal's cluster.",
    ),
    Entry(
        "journal-garbled",
        ExitCode.USAGE,
        "A line of the journal is not as kelr writes it",
        "A torn last line is expected after a crash and is left out; this one is elsewhere, so that the file cannot be"
        " relied on. Nothing was changed.",
        "The file was edited, or the disk lost part of it.",
        "Keep the file. `kelr describe` shows whether replicas have another order than before; put that right by hand.",
    ),
    Entry(
        "every-choice-refused",
        ExitCode.REFUSED,
        "None of the plan's elections is possible or safe any more",
        "The reasons stand above, one for each partition. Nothing was changed.",
        "The candidates went down, or better replicas came back.",
        "Plan again: `kelr recover plan`.",
    ),
    Entry(
        "internal-topic",
        ExitCode.REFUSED,
        "Nothing is replayed into an internal topic",
        "Records of Kafka's own topics mean something to brokers; produced again they would do harm.",
        "A rescue file with __consumer_offsets or __transaction_state was to be replayed.",
        "Read them with `kelr rescue show --records`, and put right what they say with Kafka's own tools.",
    ),
    Entry(
        "rescue-other-cluster",
        ExitCode.REFUSED,
        "The records are of another cluster",
        "They would be produced into topics that only share a name. Nothing was produced.",
        "The flags or the context are those of another cluster.",
        "Give the connection of the cluster that they came from, or --to another topic where that is meant.",
    ),
)
