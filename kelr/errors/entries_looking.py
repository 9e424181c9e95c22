"""Codes of what only looks: watching, metrics and reports, and what all reading commands share."""

from __future__ import annotations

from kelr.errors import ExitCode
from kelr.errors.entry import Entry

LOOKING = (
    Entry(
        "saved-does-not-change",
        ExitCode.USAGE,
        "What was saved does not change, so there is nothing to follow",
        "A snapshot or a metadata log answers: it says what was.",
        "--snapshot or --metadata-log was left in a command that goes on looking.",
        "Give -b HOST:PORT or --context NAME instead; `kelr describe` shows what was saved.",
    ),
    Entry(
        "nothing-to-watch",
        ExitCode.USAGE,
        "No partition was found to watch",
        "Of no partition at all it cannot be said that it is healthy, so the command does not wait for that.",
        "A cluster without topics, or a principal that may describe none: brokers leave those out of their answer.",
        "Name the topics, or grant DESCRIBE on them; docs/acls.md lists what each command needs.",
    ),
    Entry(
        "some-topics-unread",
        ExitCode.PARTLY_DONE,
        "Some topics or partitions could not be described",
        "What is shown, or saved, is right as far as it goes, and the message names what is not in it. Nothing is known"
        " of that.",
        "The topic is being deleted, its name has a slip, the principal may not describe it, or the broker failed on"
        " it.",
        "Check the names and the ACLs, and ask again; where a broker failed, its log says why.",
    ),
    Entry(
        "snapshots-reversed",
        ExitCode.USAGE,
        "The snapshot from before is the newer one",
        "A report tells what changed from the one to the other; the wrong way round it would tell the opposite.",
        "--before and --snapshot were mixed up, or the clock of a host is wrong.",
        "Give them the other way round: the message has the command.",
    ),
    Entry(
        "no-endpoint-named",
        ExitCode.USAGE,
        "Nothing says which metrics to read",
        "Neither an endpoint nor a cluster was named.",
        "`kelr metrics` was called without options, and no context or variable names a cluster.",
        "Give --endpoint, --prometheus or --jolokia, or -b HOST:PORT for what kelr itself counts.",
    ),
    Entry(
        "bad-endpoint",
        ExitCode.USAGE,
        "That is not the address of an endpoint",
        "An endpoint is http or https, a host, a port and mostly a path; HOST:PORT alone will do.",
        "A blank, another scheme, or a port that is none.",
        "Write something like http://kafka-1:9404/metrics.",
    ),
    Entry(
        "secret-in-address",
        ExitCode.USAGE,
        "There is a user or a password in the address",
        "Everybody on the machine can read the command line, and addresses go into logs. Nothing was asked.",
        "The address was copied from a browser or another tool's configuration.",
        "Leave it out, give --user NAME with --password-file FILE, and change the password if others could read it.",
    ),
    Entry(
        "several-clusters",
        ExitCode.USAGE,
        "A Prometheus server has series of several clusters",
        "Labels say that the processes behind it are not all of one cluster, and their figures would have been added"
        " up. What others say was shown; nothing of this server was counted.",
        "It scrapes several clusters, or one that stretches over several namespaces or Kubernetes clusters.",
        "Say which one with --query-match 'LABEL=\"...\"', or that all are one with --query-match 'LABEL=~\"...\"'.",
    ),
    Entry(
        "no-endpoint-answers",
        ExitCode.CONNECT,
        "None of the endpoints, nor the cluster, could be read",
        "Each row says why. No figure is known; that is not the same as 0.",
        "Wrong addresses, exporters that are down, a certificate that is not trusted, or a login that was refused.",
        "Correct what the rows name; curl with the same address shows what answers there.",
    ),
    Entry(
        "some-endpoints-silent",
        ExitCode.PARTLY_DONE,
        "Some of what was asked could not be read",
        "What the others say is shown. Sums over brokers lack those that are named, and say so.",
        "A broker that is down takes its exporter with it, which is to be expected in an incident.",
        "Ask again when they are back; what kelr counts on the cluster itself needs no exporter.",
    ),
    Entry(
        "cannot-listen",
        ExitCode.USAGE,
        "The exporter cannot listen at that address",
        "Nothing is served.",
        "Another process has the port, the address is not one of this machine, or a port below 1024 needs rights.",
        "Choose another address with --listen HOST:PORT.",
    ),
    Entry(
        "tls-file-unusable",
        ExitCode.USAGE,
        "A file of certificates or keys cannot be used",
        "It cannot be read, does not open with the password that was given, or holds something else than it should."
        " Nobody was asked anything.",
        "Another file, a certificate without its key, a wrong password, or a format that is not read (DER, JKS).",
        "Give certificates and keys as PEM, or as PKCS12 where docs/security.md says so.",
    ),
)
