"""The codes that errors have which need no entry of their own: the message says all there is."""

from __future__ import annotations

from kelr.errors import ExitCode
from kelr.errors.entry import Entry

CLASSES = (
    Entry(
        "usage",
        ExitCode.USAGE,
        "The command line is wrong",
        "Options contradict each other, or a value cannot be read. Nothing was asked of the cluster, or nothing"
        " changed.",
        "A slip of the keyboard, or a flag of another tool that means something else here.",
        "Do what the line `next:` says; `kelr COMMAND --help` has every option and examples.",
    ),
    Entry(
        "bad-input",
        ExitCode.USAGE,
        "A file is not what it should be",
        "The message names the file, and the line or byte where it goes wrong. Nothing of it was used.",
        "The file was edited by hand, cut short in a copy, or is of another kind.",
        "Correct the place that is named, or give the file that was meant.",
    ),
    Entry(
        "connect",
        ExitCode.CONNECT,
        "The cluster could not be asked",
        "No answer came that could be used. What the cluster holds is not known; nothing was changed.",
        "Brokers or controllers are down or cannot be reached from here, or gave an answer that contradicts itself.",
        "Ask again, from a host near the cluster, and with a longer --timeout; --verbose says who was asked.",
    ),
    Entry(
        "authentication",
        ExitCode.CONNECT,
        "The credentials were refused",
        "A broker or controller was reached and did not accept who kelr says it is.",
        "User name, password or mechanism are wrong, or the password was changed.",
        "Check the client properties that kelr was given; the broker's log says why it refused.",
    ),
    Entry(
        "not-authorized",
        ExitCode.NOT_AUTHORIZED,
        "The principal lacks an ACL",
        "The message names the operation and the resource. What could not be read is not known; nothing was changed.",
        "The principal was given other ACLs than the command needs; docs/acls.md lists them.",
        "Have the ACL added, or use a principal that has it.",
    ),
    Entry(
        "unsupported",
        ExitCode.UNSUPPORTED,
        "The cluster, or this machine, cannot do it",
        "The brokers know no such request, or something that is needed here is not installed.",
        "The brokers are older than the request, or an extra of kelr is missing.",
        "The message says what is missing; docs/requests.md lists what kelr asks of which version.",
    ),
    Entry(
        "lab",
        ExitCode.UNSUPPORTED,
        "The lab's own cluster could not be driven",
        "It concerns the cluster that kelr runs on this machine, and no other.",
        "A process of it ended or hangs, or something that it needs is missing.",
        "`kelr lab status` shows the nodes; their logs are in the lab's directory. `kelr lab down` and `up` start"
        " anew.",
    ),
    Entry(
        "refused",
        ExitCode.REFUSED,
        "Refused for safety",
        "Data would be at risk, or what the command stands on is not known well enough. Nothing was changed.",
        "The cluster is in another state than the one that was looked at, or evidence is missing.",
        "Read the reason, look again with `kelr explain`, and do what the line `next:` says.",
    ),
    Entry(
        "partly-done",
        ExitCode.PARTLY_DONE,
        "Some of it was done",
        "The output tells of each partition what became of it; what it does not tell as done was not done.",
        "Some partitions failed, or the run was interrupted.",
        "`kelr recover status` says what is left, and which command goes on.",
    ),
    Entry(
        "not-recorded",
        ExitCode.PARTLY_DONE,
        "It was done, and its record could not be written",
        "The cluster was changed as the output tells; the journal or the audit log could not be written any more, so"
        " that"
        " kelr went no further.",
        "The disk of the state directory (KELR_STATE_DIR) is full or failed.",
        "Keep the output: it is the only record. Free space, then run `kelr recover status`.",
    ),
    Entry(
        "error",
        ExitCode.USAGE,
        "Something failed that has no better name",
        "The message says what.",
        "Mostly a process that kelr started and that ended early.",
        "Run it again with --debug, and report what it shows.",
    ),
)
