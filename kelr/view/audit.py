"""What ``kelr recover log`` shows: who changed what, when, with which result."""

from __future__ import annotations

from kelr.model.audit import AuditRecord
from kelr.view.columns import Column, Fact, Json, Shown, View, datum
from kelr.view.styled import Style, Text, plain, styled

KIND = "kelr/audit-log"


def audit_view() -> View[AuditRecord]:
    """One row for each line of the log, oldest first."""

    def fact(key: str, type_: str, about: str) -> Column[AuditRecord]:
        return datum(key, type_, about, lambda row: _value(row, key))

    people: tuple[Column[AuditRecord], ...] = (
        Column("time", "WHEN (UTC)", text=lambda row: plain(row.when), shown=Shown.PEOPLE),
        Column("who", "WHO", text=_who, shown=Shown.PEOPLE, yields=2),
        Column("did", "WHAT", text=lambda row: plain(_what(row)), shown=Shown.PEOPLE, hyphenated=True),
        Column("where", "WHERE", text=lambda row: plain(_where(row)), shown=Shown.PEOPLE),
        Column("ended", "RESULT", text=_result, shown=Shown.PEOPLE, hyphenated=True),
        Column("plan", "PLAN", text=lambda row: plain(row.plan_id or "-"), shown=Shown.PEOPLE_WIDE),
        Column("cluster", "CLUSTER", text=lambda row: plain(row.cluster_id or "?"), shown=Shown.PEOPLE_WIDE),
        Column("words", "", text=lambda row: plain(_words(row)), shown=Shown.PEOPLE, prose=True),
    )
    return View(
        KIND,
        (
            fact("when", "string", "The time in ISO 8601, UTC."),
            fact("at_ms", "integer", "The same in milliseconds since 1970 UTC."),
            fact("boot_id", "string?", "Of an election: the boot of the machine that kelr ran on; null: not recorded."),
            fact("boot_ms", "integer?", "Milliseconds since that boot: the time by a clock that cannot be set."),
            fact("what", "string", "election, restore, hold, config or rescue."),
            fact("command", "string", "The command, such as recover apply."),
            fact("topic", "string", "Topic name; of a broker's config `broker 3`."),
            fact("partition", "integer?", "Partition number; null where a whole topic was changed."),
            fact(
                "result",
                "string",
                "How it ended: that of an election, or done, refused or failed; begun: not yet, and a later line tells"
                " the end unless kelr was killed.",
            ),
            fact("wanted", "integer?", "The replica that was to lead."),
            fact("election", "string?", "The kind of election."),
            fact("method", "string?", "The requests by which it was carried out."),
            fact(
                "asked",
                "boolean?",
                "Whether the election was asked for, and may have been carried out: then another leader may be its"
                " result; null: not recorded.",
            ),
            fact("error", "string?", "Kafka's name of the error, where there was one."),
            fact("text", "string", "What became of it, in a sentence."),
            fact("user", "string", "The operating system's name of the user."),
            fact("host", "string", "The machine that kelr ran on."),
            fact("principal", "string?", "The name that the cluster knows; null: no login."),
            fact("version", "string", "Of kelr."),
            fact("cluster_id", "string?", "The cluster."),
            fact("plan_id", "string?", "The plan that was carried out."),
            fact("journal", "string?", "The journal's file name."),
            fact("before", "object?", "State or config from before; null: not recorded."),
            fact("after", "object?", "State or config after; null: not recorded."),
            fact("evidence", "object[]", "What each replica's log was known to hold; of a rescue, its file."),
            fact("loss", "object?", "The loss that was shown."),
            fact("consent", "object?", "What was needed, what was given, and by whom; null: not recorded."),
            fact("force_reason", "string?", "The reason given with --force."),
            *people,
        ),
        head=(Fact("file", "string", "The audit log's file."),),
    )


def _value(row: AuditRecord, key: str) -> Json:
    value: Json = getattr(row, key)
    # Lines that have nothing to say of these are written with empty objects: not recorded is not "known to be none".
    return None if value == {} else value


def _who(row: AuditRecord) -> Text:
    principal = f" as {row.principal}" if row.principal else ""
    return plain(f"{row.user}@{row.host}{principal}")


def _what(row: AuditRecord) -> str:
    return f"{row.election} election" if row.election else str(row.what)


def _where(row: AuditRecord) -> str:
    return row.topic if row.partition is None else f"{row.topic}:{row.partition}"


def _result(row: AuditRecord) -> Text:
    if row.result == "begun":
        return styled(row.result, Style.NOTICE)
    return styled(row.result, Style.GOOD if row.result in {"done", "not-needed"} else Style.BAD)


def _words(row: AuditRecord) -> str:
    parts = [row.text] if row.text else []
    if row.wanted is not None and not row.text:
        parts.append(f"broker {row.wanted} to lead")
    if row.error and row.error not in row.text:
        parts.append(row.error)
    if row.force_reason:
        parts.append(f"forced: {row.force_reason}")
    return "; ".join(parts)
