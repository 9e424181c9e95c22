"""What was lost, in words: one place for what ``kelr recover verify``, ``recover status`` and ``report`` say of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kelr.engine.loss_words import promise
from kelr.engine.planning.lost import Elected, Lost, LostInAll, lost_in_all
from kelr.engine.words import agree, brokers, joined
from kelr.model import Bounds, TopicPartition
from kelr.view.columns import Json
from kelr.view.plan_words import elections_in_words, in_one_line, named, partitions_in_words

LOST_FACT = (
    "What the elections that were carried out lost, in offsets: {elections, committed: [at least, at most], total:"
    " [at least, at most], unknown, promised, unread, truncated, saved, files, unchecked, read_for_files, unsure,"
    " replayed, accepted, text}. At most null: UNKNOWN beyond the lower bound. unknown: elections whose committed"
    " loss nothing bounds; promised: those that lost nothing committed only if fewer than min ISR replicas lost data;"
    " unread: replicas whose logs were not read before them, nor whole for a rescue file that kelr knows; truncated:"
    " those of them that are known to follow the new leaders now; saved: how many of the lost offsets rescue files"
    " hold at least, by their manifests; files: those files; unchecked: those of them that were not compared with the"
    " SHA-256s in their manifests; read_for_files: replicas of whose logs, not read otherwise, those have all that"
    " the new leaders lack; unsure: elections of which it is UNKNOWN whether they came about; replayed: records that"
    " were produced again since; accepted: what was given for it, by whom."
)


NOT_ON_RECORD = "no election of this plan is on record"


def lost_document(found: Sequence[Lost]) -> Json:
    """What elections lost, for a document."""
    lost = lost_in_all(found)
    return {
        "elections": lost.elections,
        "committed": [lost.committed.at_least, lost.committed.at_most],
        "total": [lost.total.at_least, lost.total.at_most],
        "unknown": lost.unknown,
        "promised": len(lost.promised),
        "unread": list(lost.unread),
        "truncated": list(lost.truncated),
        "saved": lost.saved,
        "files": list(lost.files),
        "unchecked": list(lost.unchecked),
        "read_for_files": list(lost.read_for_files),
        "unsure": lost.unsure,
        "replayed": sum(one.replayed for one in found),
        "accepted": sorted({one.accepted for one in found if one.accepted}),
        "text": lost_in_words(lost) if lost.elections else "No election of the plan is known to have been carried out.",
    }


def bounds_in_words(bounds: Bounds | None) -> str:
    """A number of offsets, as far as it is known; ``UNKNOWN``, never 0, where nothing bounds it."""
    if bounds is None:
        return "UNKNOWN"
    if bounds.exact:
        return f"{bounds.at_least:,}"
    if bounds.at_most is None:
        return f"UNKNOWN, at least {bounds.at_least:,}" if bounds.at_least else "UNKNOWN"
    return f"{bounds.at_least:,} to {bounds.at_most:,}"


def lost_in_short(lost: LostInAll) -> str:
    """The end of a sentence: ``UNKNOWN, at least 19 offsets``; ``nothing``."""
    if lost.total == Bounds(0, 0):
        return f"nothing {promise(lost.promised)}" if lost.promised else "nothing"
    if lost.total.at_most is None and lost.committed == Bounds(0, 0):
        none = f"nothing {promise(lost.promised)}" if lost.promised else "no committed offset"
        return f"{none}; others: {bounds_in_words(lost.total)}"
    words = bounds_in_words(lost.total)
    return words if words == "UNKNOWN" else f"{words} offset{'' if lost.total == Bounds(1, 1) else 's'}"


def lost_in_words(lost: LostInAll) -> str:
    """One sentence: how many offsets, how many of them committed, and for how many elections that is not known."""
    known = f"; UNKNOWN for {lost.unknown:,} of them" if 0 < lost.unknown < lost.elections else ""
    if lost.total == Bounds(0, 0):
        return f"{lost_in_short(lost)} ({elections_in_words(lost.elections)})."
    committed = bounds_in_words(lost.committed)
    condition = f" ({promise(lost.promised)})" if lost.promised else ""
    words = f"{bounds_in_words(lost.total)} offsets in all, of them committed: {committed}{condition}"
    if lost.total == Bounds(0) and lost.committed == Bounds(0):
        words = "UNKNOWN"
    return f"{words} ({elections_in_words(lost.elections)}{known})."


def saved_in_words(lost: LostInAll) -> str:
    """What rescue files hold of it, and whether they are as they were written: ``Saved: at least 90 of these offsets,
    in x.kelr-rescue (checked)``."""
    many = f"at least {lost.saved:,} of these offsets" if lost.saved else "none of these offsets"
    files = [f"{one} ({'not checked' if one in lost.unchecked else 'checked'})" for one in lost.files]
    show = [f"kelr rescue show {one}" for one in lost.unchecked]
    return f"Saved: {many}, in {joined(files)}" + (f". To check: {joined(show)}" if show else "")


def _some(found: Sequence[Lost], many: int) -> str:
    return "" if many == len(found) else f" ({many:,} of {elections_in_words(len(found))})"


_ON_RECORD = {
    None: "By its audit log, this machine did not ask for it. Another election may have chosen the leader.",
    Elected.NOBODY: "This machine's run of it elected no leader; one from elsewhere may have.",
    Elected.PERHAPS_ANOTHER: "This machine asked for it, and did not see the planned replica elected.",
}
"""What the audit log tells of an election of which it is not known whether it came about."""


def _places(where: Sequence[TopicPartition]) -> str:
    return named(where) if in_one_line(where) else partitions_in_words(len(where))


def _followers(found: Sequence[Lost], lost: LostInAll) -> Iterator[str]:
    """Of the replicas that nobody had read: who follows or leads now, and what that tells of what only they held."""
    sure = {replica for one in found if not one.unsure for replica in one.truncated}
    for truncated, gone in (
        ([one for one in lost.truncated if one in sure], True),
        ([one for one in lost.truncated if one not in sure], False),
    ):
        if not truncated:
            continue
        subject, many = brokers(truncated), len(truncated)
        new = "new leader" if gone else "leader"
        leaders = agree(lost.elections, new, f"{new}s")
        yield f"{subject[:1].upper()}{subject[1:]} {agree(many, 'follows', 'follow')} the {leaders}."
        only = agree(many, "it", "they")
        if gone:
            yield f"What only {only} held is gone, and no request tells how much it was."
        else:
            yield f"Whether {only} gave anything up for the plan is UNKNOWN."
    if lost.leading:
        subject, many = brokers(lost.leading), len(lost.leading)
        places = _places([one.address for one in found if one.leads is not None])
        yield (
            f"{subject[:1].upper()}{subject[1:]} {agree(many, 'leads', 'lead')} {places} now: whether"
            f" {agree(many, 'it', 'they')} gave anything up before is UNKNOWN."
        )


def lost_lines(found: Sequence[Lost], lost: LostInAll) -> Iterator[str]:
    """What to know besides: which elections may not have come about, whose logs were never read, who may still hold
    what, and what was accepted."""
    another = [one.address for one in found if one.led_first is not None]
    if another:
        yield f"Another replica than planned was elected first in {_places(another)}."
        yield "It is UNKNOWN whether a request of the plan elected it."
    clean = [one.address for one in found if one.led_first is not None and one.was_in_sync]
    if clean:
        which = "It" if len(clean) == len(another) else f"That of {_places(clean)}"
        yield (
            f"{which} was in the ISR or ELR when planned: if Kafka elected it after a clean shutdown, no committed"
            " record was lost. A metadata log shows that: kelr history --bootstrap-controller HOST:PORT."
        )
    where = [one.address for one in found if one.unsure and one.led_first is None]
    if where:
        elections = agree(len(where), "election", "elections")
        yield f"It is UNKNOWN whether the plan's {elections} came about in {_places(where)}."
    if lost.unsure:
        yield from dict.fromkeys(_ON_RECORD[one.on_record] for one in found if one.unsure)
    if lost.unread:
        logs = agree(len(lost.unread), "The log", "The logs")
        were = agree(len(lost.unread), "was", "were")
        election = agree(lost.elections, "election", "elections")
        some = _some(found, sum(bool(one.unread) for one in found)) if lost.read_for_files else ""
        yield f"{logs} of {brokers(lost.unread)} {were} not read before the {election}{some}."
    yield from _followers(found, lost)
    left = lost.expected
    if left:
        many, leaders = len(left), agree(lost.elections, "leader", "leaders")
        follow, have = agree(many, "it follows", "they follow"), agree(many, "it has", "they have")
        disks, them = agree(many, "its disk", "their disks"), agree(many, "it", "them")
        yield (
            f"What only {brokers(left)} held is lost once {follow} the new {leaders}. If {have} not been back since,"
            f" {disks} may still tell: save {them} with kelr rescue dump --log-dir DIRECTORY before"
            f" {agree(many, 'it starts', 'they start')}."
        )
    if lost.files:
        yield f"{saved_in_words(lost)}."
    if lost.read_for_files:
        read = len(lost.read_for_files)
        logs, were = agree(read, "The log", "The logs"), agree(read, "was", "were")
        some = _some(found, sum(bool(one.read_for_files) for one in found))
        yield (
            f"{logs} of {brokers(lost.read_for_files)} {were} read for that{some}:"
            f" as {agree(read, 'it was', 'they were')} then, all that the new"
            f" {agree(lost.elections, 'leader lacks', 'leaders lack')} of {agree(read, 'it', 'them')} is there."
        )
    again = sum(one.replayed for one in found)
    if again:
        yield f"Produced again since: {again:,} {agree(again, 'record', 'records')}."
    accepted = sorted({one.accepted for one in found if one.accepted})
    if accepted:
        yield f"Accepted: {'; '.join(accepted)}."
