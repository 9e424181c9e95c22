"""``kelr lab``: up, status, incident, restore, env, down; what acts on nodes is in the module beside this one."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kelr.commands import complete, lab_nodes
from kelr.commands.lab_parts import NO_LAB, Directory, ids, next_command, opened, show
from kelr.commands.options import command_group, on_this_machine, open_output
from kelr.errors import ExitCode, UsageError
from kelr.view.output import Output

if TYPE_CHECKING:
    from kelr.lab import LabSpec
    from kelr.lab.simulated.spec import SimulatedSpec


_whole = typer.Typer(add_completion=False)

REAL = "Real Kafka"
SIMULATED = "Simulated"
_LAYOUT = ("--topics", "--partitions", "--replication")


class LogInfo(StrEnum):
    """How a simulated cluster's brokers speak GetReplicaLogInfo."""

    KIP = "kip"
    PATCH = "patch"
    OFF = "off"


class SecurityChoice(StrEnum):
    """`kelr.lab.security.kinds.Security`, which --help does without."""

    PLAINTEXT = "plaintext"
    SSL = "ssl"
    MTLS = "mtls"
    SASL_PLAINTEXT = "sasl_plaintext"
    SASL_SSL = "sasl_ssl"


class MechanismChoice(StrEnum):
    """`kelr.lab.security.kinds.Mechanism`."""

    PLAIN = "PLAIN"
    SCRAM_256 = "SCRAM-SHA-256"
    SCRAM_512 = "SCRAM-SHA-512"
    OAUTHBEARER = "OAUTHBEARER"


def _number(name: str, help_text: str) -> Any:
    return typer.Option(f"--{name}", metavar="N", help=help_text, rich_help_panel=SIMULATED)


@_whole.command(
    **on_this_machine(
        {
            ExitCode.CONNECT: "Kafka's jars could not be fetched",
            ExitCode.UNSUPPORTED: "no Java, no room, a lab is there already, or it does not come up",
        }
    )
)
def up(
    ctx: typer.Context,
    *,
    brokers: Annotated[int | None, typer.Option("--brokers", metavar="N", help="How many (default: 3).")] = None,
    min_isr: Annotated[
        int | None, typer.Option("--min-isr", metavar="N", help="min.insync.replicas (default: 2).")
    ] = None,
    racks: Annotated[
        int | None, typer.Option("--racks", metavar="N", help="Over how many: az1, az2, ... (default: 3).")
    ] = None,
    directory: Directory = None,
    kafka: Annotated[
        str | None,
        typer.Option("--kafka", metavar="VERSION", help="Which Apache Kafka (default: 4.4.0).", rich_help_panel=REAL),
    ] = None,
    no_elr: Annotated[bool, typer.Option("--no-elr", help="Switch ELR (KIP-966) off.", rich_help_panel=REAL)] = False,
    heap_mb: Annotated[
        int | None,
        typer.Option("--heap-mb", metavar="MIB", help="Java heap of each broker (default: 320).", rich_help_panel=REAL),
    ] = None,
    controllers: Annotated[
        int | None,
        typer.Option("--controllers", metavar="N", help="How many controllers (default: 1)."),
    ] = None,
    security: Annotated[
        SecurityChoice | None,
        typer.Option(
            "--security",
            metavar="KIND",
            help="How clients come in: plaintext, ssl, mtls, sasl_plaintext or sasl_ssl (default: plaintext).",
            rich_help_panel=REAL,
        ),
    ] = None,
    sasl_mechanism: Annotated[
        MechanismChoice | None,
        typer.Option(
            "--sasl-mechanism",
            metavar="NAME",
            help="PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER (default: SCRAM-SHA-512).",
            rich_help_panel=REAL,
            case_sensitive=False,
        ),
    ] = None,
    authorizer: Annotated[
        bool, typer.Option("--authorizer", help="Brokers ask for ACLs (StandardAuthorizer).", rich_help_panel=REAL)
    ] = False,
    simulated: Annotated[
        bool,
        typer.Option(
            "--simulated",
            help="A cluster of kelr's own that has all of KIP-966: no Java, no download.",
            rich_help_panel=SIMULATED,
        ),
    ] = False,
    rules: Annotated[
        str | None,
        typer.Option(
            "--rules",
            autocompletion=complete.rules,
            metavar="NAME",
            help="Rule set of its controller, such as elr-4.3 (default: kip966-balanced).",
            rich_help_panel=SIMULATED,
        ),
    ] = None,
    topics: Annotated[int | None, _number("topics", "Begin with so many healthy topics.")] = None,
    partitions: Annotated[int | None, _number("partitions", "Partitions of each of them (default: 1).")] = None,
    replication: Annotated[int | None, _number("replication", "Replicas of each (default: 3).")] = None,
    log_info: Annotated[
        LogInfo | None,
        typer.Option(
            "--log-info",
            metavar="KIND",
            help="How brokers speak GetReplicaLogInfo: kip, patch, or off as in released Kafka (default: kip).",
            rich_help_panel=SIMULATED,
        ),
    ] = None,
    log_info_key: Annotated[
        int | None, _number("log-info-api-key", "API key of GetReplicaLogInfo; 70 or 93, by how it is spoken.")
    ] = None,
    page_limit: Annotated[
        int | None, _number("page-limit", "Partitions in a page of DescribeTopicPartitions (default: 2000).")
    ] = None,
    snapshot: Annotated[
        Path | None,
        typer.Option(
            "--from", metavar="FILE", help="Make the cluster from a file of `kelr snapshot`.", rich_help_panel=SIMULATED
        ),
    ] = None,
    log_dirs: Annotated[
        bool,
        typer.Option(
            "--log-dirs",
            help="Leave the logs of brokers that are down in DIR/broker-N/data, in Kafka's format.",
            rich_help_panel=SIMULATED,
        ),
    ] = False,
    virtual_clock: Annotated[
        bool,
        typer.Option("--virtual-clock", help="Time stands still until `kelr lab advance`.", rich_help_panel=SIMULATED),
    ] = False,
) -> None:
    """Start a cluster: a controller and some brokers, on free ports of 127.0.0.1.

    Real Kafka's jars are fetched once and verified. The lab outlives this
    shell; `kelr lab down` ends it.

    Examples:
      kelr lab up
      kelr lab up --kafka 4.0.0 --brokers 6 --racks 3
      kelr lab up --security sasl_ssl --authorizer
      kelr lab up --simulated
      kelr lab up --simulated --from orders.kelr
      kelr lab up --simulated --brokers 30 --topics 10000 --partitions 100
    """
    output = open_output(ctx)
    real = {"--kafka": kafka, "--no-elr": no_elr, "--heap-mb": heap_mb}
    real |= {"--security": security, "--sasl-mechanism": sasl_mechanism, "--authorizer": authorizer}
    rehearsed = {
        "--rules": rules,
        "--topics": topics,
        "--partitions": partitions,
        "--replication": replication,
        "--log-info": log_info,
        "--log-info-api-key": log_info_key,
        "--page-limit": page_limit,
        "--from": snapshot,
        "--log-dirs": log_dirs,
        "--virtual-clock": virtual_clock,
    }
    if simulated:
        _only(real, "a simulated lab has no")
    else:
        _only(rehearsed, "without --simulated there is no")
    if snapshot is not None:
        own = {"--brokers": brokers, "--racks": racks, "--min-isr": min_isr}
        _only(own | {name: rehearsed[name] for name in _LAYOUT}, "the snapshot has its own")
    if topics is None:
        _only({name: rehearsed[name] for name in _LAYOUT}, "without --topics there is nothing for")
    if log_info is LogInfo.OFF:
        _only({"--log-info-api-key": log_info_key}, "with --log-info off there is no")
    voters = 1 if controllers is None else controllers
    count, zones = 3 if brokers is None else brokers, 3 if racks is None else racks
    in_sync = min(2, count) if min_isr is None else min_isr
    if simulated:
        spec = _simulated_spec(count, zones, in_sync, {**rehearsed, "--controllers": voters})
        _up_simulated(output, spec, directory, snapshot, log_dirs=log_dirs, virtual_clock=virtual_clock)
    else:
        from kelr.lab import LabSpec  # noqa: PLC0415 - not for --help
        from kelr.lab.spec import DEFAULT_KAFKA  # noqa: PLC0415

        heap = 320 if heap_mb is None else heap_mb
        kind = SecurityChoice.PLAINTEXT if security is None else security
        mechanism = None if sasl_mechanism is None else sasl_mechanism.value
        layout = LabSpec(
            count,
            kafka or DEFAULT_KAFKA,
            in_sync,
            zones,
            not no_elr,
            heap,
            voters,
            security=kind.value,
            sasl_mechanism=mechanism,
            authorizer=authorizer,
        )
        _up_real(output, layout, directory)


def _only(others: dict[str, Any], why: str) -> None:
    given = [name for name, value in others.items() if value is not None and value is not False]
    if given:
        raise UsageError(f"{why} {given[0]}", next_step="kelr lab up --help shows which options go together")


def _simulated_spec(brokers: int, racks: int, min_isr: int, given: dict[str, Any]) -> SimulatedSpec:
    from kelr.lab.simulated.spec import SimulatedSpec  # noqa: PLC0415 - not for --help
    from kelr.protocol.dialects import Dialect  # noqa: PLC0415

    log_info = given["--log-info"] or LogInfo.KIP
    replication = given["--replication"]
    named = {
        "rules": given["--rules"],
        "topics": given["--topics"],
        "partitions": given["--partitions"],
        "log_info_key": given["--log-info-api-key"],
        "page_limit": given["--page-limit"],
        "controllers": given["--controllers"],
    }
    chosen = {name: value for name, value in named.items() if value is not None}
    base = SimulatedSpec(
        brokers=brokers,
        racks=racks,
        min_isr=min_isr,
        replication=min(3, brokers) if replication is None else replication,
        log_info=None if log_info is LogInfo.OFF else Dialect(log_info.value),
        **chosen,
    )
    if given["--from"] is None:
        return base
    from kelr.lab.simulated.from_snapshot import spec_of  # noqa: PLC0415 - where there is one
    from kelr.sources.snapshot_file import read_snapshot  # noqa: PLC0415

    return spec_of(read_snapshot(given["--from"]), base, rules=given["--rules"])


def _up_simulated(
    output: Output,
    spec: SimulatedSpec,
    directory: Path | None,
    snapshot: Path | None,
    *,
    log_dirs: bool,
    virtual_clock: bool,
) -> None:
    from kelr.lab.simulated.lab import SimulatedLab  # noqa: PLC0415 - not for --help
    from kelr.lab.state import default_directory  # noqa: PLC0415

    place = directory or default_directory()
    lab = SimulatedLab.up(
        spec, place, snapshot=snapshot, log_dirs=log_dirs, virtual_clock=virtual_clock, report=output.note
    )
    show(output, lab)
    if snapshot is None:
        next_command(output, lab, "lab", "incident")
    else:
        output.next(["explain", "-b", lab.bootstrap_servers])


def _up_real(output: Output, spec: LabSpec, directory: Path | None) -> None:
    from kelr.lab import Lab  # noqa: PLC0415 - not for --help
    from kelr.lab.state import default_directory  # noqa: PLC0415

    lab = Lab.up(spec, directory or default_directory(), report=output.note, progress=output.progress)
    show(output, lab)
    if lab.access.client_file().exists():
        users = lab.access.users[1:]
        for user in users:
            output.note(f"a user without any ACL: --command-config {lab.access.client_file(user)}")
        if spec.authorizer and not users:
            output.note("clients do not log in: everyone is User:ANONYMOUS, who may do everything in this lab")
        output.next(["describe", *lab.connection])
    next_command(output, lab, "lab", "incident")


app = command_group("Run a real or simulated cluster, and incidents on it.")


@_whole.command(**on_this_machine(NO_LAB))
def status(ctx: typer.Context, *, directory: Directory = None) -> None:
    """Show the lab's nodes: which run, and which the cluster holds to be fenced.

    Examples:
      kelr lab status -o json
    """
    output = open_output(ctx)
    show(output, opened(directory))


@_whole.command(**on_this_machine(NO_LAB))
def incident(
    ctx: typer.Context,
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME", autocompletion=complete.incidents, help="Which incident; without it they are listed."
        ),
    ] = None,
    *,
    topic: Annotated[str | None, typer.Option("--topic", metavar="NAME", help="A new topic's name.")] = None,
    partitions: Annotated[int, typer.Option("--partitions", metavar="N", help="How many it has.")] = 6,
    directory: Directory = None,
) -> None:
    """Make an incident happen: brokers die, records are produced, logs are cut.

    The lab is brought back to health first, and the incident gets a fresh topic.

    Examples:
      kelr lab incident
      kelr lab incident needs-unclean-recovery --topic orders
    """
    output = open_output(ctx)
    from kelr.lab import INCIDENTS, find_incident, run_incident  # noqa: PLC0415 - not for --help
    from kelr.view.lab import incident_view, incidents_view  # noqa: PLC0415

    if name is None:
        with output.listing(incidents_view()) as listing:
            listing.add(INCIDENTS.values())
        return
    find_incident(name)
    lab = opened(directory)
    done = run_incident(lab, name, topic=topic, partitions=partitions, report=output.note)
    head = {"incident": done.incident, "bootstrap_servers": lab.client_servers}
    with output.listing(incident_view(), {**head, "topic": done.topic, "partitions": done.partitions}) as listing:
        if not output.format.for_people:
            listing.add(done.steps)
        listing.finish(
            {"live": done.live, "absent": done.absent, "awaited": done.awaited, "next": done.try_next},
        )
    if output.format.for_people:
        output.line(f"topic {done.topic}; live: {ids(done.live)}; down: {ids(done.absent)}. Try:")
        for command in done.try_next:
            output.line(f"  {command}")


@_whole.command(**on_this_machine(NO_LAB))
def restore(ctx: typer.Context, *, directory: Directory = None) -> None:
    """Start every node that is down, and wait until partitions have leaders again.

    Examples:
      kelr lab restore
    """
    output = open_output(ctx)
    lab = opened(directory)
    for address in lab.restore():
        output.note(f"{address} stays without a leader: only an unclean election helps it")
    show(output, lab)


@_whole.command(**on_this_machine(NO_LAB))
def env(ctx: typer.Context, *, directory: Directory = None) -> None:
    """Print what to export, so that kelr and this shell talk to the lab.

    Examples:
      eval "$(kelr lab env)"
    """
    output = open_output(ctx)
    from kelr.lab.state import default_directory  # noqa: PLC0415 - not for --help
    from kelr.view.lab import environment_view  # noqa: PLC0415

    lab = opened(directory)
    flags = lab.connection
    variables = [("KELR_BOOTSTRAP_SERVER", lab.client_servers)]
    if "--command-config" in flags:
        variables.append(("KELR_COMMAND_CONFIG", flags[-1]))
    if lab.directory != default_directory().absolute():
        variables.append(("KELR_LAB_DIR", str(lab.directory)))
    with output.listing(environment_view()) as listing:
        listing.add(variables)


@_whole.command(**on_this_machine(NO_LAB))
def down(
    ctx: typer.Context,
    *,
    directory: Directory = None,
    keep_data: Annotated[bool, typer.Option("--keep-data", help="Leave the nodes' files where they are.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Also where lab.json is damaged.")] = False,
) -> None:
    """End the lab's own processes, and delete its directory.

    Examples:
      kelr lab down
      kelr lab down --keep-data
    """
    output = open_output(ctx)
    from kelr.lab import down as end  # noqa: PLC0415 - not for --help
    from kelr.lab.state import default_directory  # noqa: PLC0415

    place = directory or default_directory()
    end(place, keep_data=keep_data, force=force)
    output.note(
        f"the lab has ended; its data is in {place}" if keep_data else "the lab has ended; nothing is left of it"
    )


for _part in (_whole, lab_nodes.app):
    app.add_typer(_part)
