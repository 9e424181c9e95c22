"""``kelr lab``: up, status, incident, kill, stop, start, restore, env, down."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kelr.commands.options import with_output
from kelr.errors import ExitCode
from kelr.view.columns import Json
from kelr.view.output import Output

if TYPE_CHECKING:
    from kelr.lab import Lab

app = typer.Typer(help="Run a real Apache Kafka cluster on this machine, and incidents on it.", no_args_is_help=True)

Directory = Annotated[
    Path | None, typer.Option("--dir", metavar="DIR", help="Where the lab lives [env: KELR_LAB_DIR].")
]
Brokers = Annotated[list[int], typer.Argument(metavar="BROKER...", help="Ids of brokers, from 1.", show_default=False)]
_NO_LAB = {ExitCode.UNSUPPORTED: "there is no lab, or it does not do what it should"}


@app.command()
@with_output(
    exits={
        ExitCode.CONNECT: "Kafka's jars could not be fetched",
        ExitCode.UNSUPPORTED: "no Java, no room, a lab is there already, or it does not come up",
    }
)
def up(
    output: Output,
    *,
    brokers: Annotated[int, typer.Option("--brokers", metavar="N", help="How many brokers.")] = 3,
    kafka: Annotated[
        str | None, typer.Option("--kafka", metavar="VERSION", help="Which Apache Kafka; the newest unless told.")
    ] = None,
    min_isr: Annotated[
        int | None, typer.Option("--min-isr", metavar="N", help="min.insync.replicas; 2 unless told.")
    ] = None,
    racks: Annotated[int, typer.Option("--racks", metavar="N", help="Over how many racks: az1, az2, ...")] = 3,
    no_elr: Annotated[bool, typer.Option("--no-elr", help="Switch ELR (KIP-966) off.")] = False,
    heap_mb: Annotated[int, typer.Option("--heap-mb", metavar="MIB", help="Java heap of each broker.")] = 320,
    directory: Directory = None,
) -> None:
    """Start a cluster: one controller and some brokers, on free ports of 127.0.0.1.

    Kafka's jars are fetched once and verified. The lab outlives this shell;
    `kelr lab down` ends it.

    Examples:
      kelr lab up
      kelr lab up --kafka 4.0.0 --brokers 6 --racks 3
    """
    from kelr.lab import Lab, LabSpec  # noqa: PLC0415 - not for --help
    from kelr.lab.spec import NEWEST_KAFKA  # noqa: PLC0415
    from kelr.lab.state import default_directory  # noqa: PLC0415

    wanted = min(2, brokers) if min_isr is None else min_isr
    spec = LabSpec(brokers, kafka or NEWEST_KAFKA, wanted, racks, not no_elr, heap_mb)
    lab = Lab.up(spec, directory or default_directory(), report=output.note, progress=output.progress)
    _show(output, lab)
    _next(output, lab, "lab", "incident")


@app.command()
@with_output(exits=_NO_LAB)
def status(output: Output, *, directory: Directory = None) -> None:
    """Show the lab's nodes: which run, and which the cluster holds to be fenced.

    Examples:
      kelr lab status -o json
    """
    _show(output, _open(directory))


@app.command()
@with_output(exits=_NO_LAB)
def incident(
    output: Output,
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Which incident; without it they are listed.")
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
    from kelr.lab import INCIDENTS, find_incident, run_incident  # noqa: PLC0415 - not for --help
    from kelr.view.lab import incident_view, incidents_view  # noqa: PLC0415

    if name is None:
        with output.listing(incidents_view()) as listing:
            listing.add(INCIDENTS.values())
        return
    find_incident(name)
    lab = _open(directory)
    done = run_incident(lab, name, topic=topic, partitions=partitions, report=output.note)
    head = {"incident": done.incident, "bootstrap_servers": lab.bootstrap_servers}
    with output.listing(incident_view(), {**head, "topic": done.topic, "partitions": done.partitions}) as listing:
        if not output.format.for_people:
            listing.add(done.steps)
        listing.finish(
            {"live": done.live, "absent": done.absent, "awaited": done.awaited, "next": done.try_next},
        )
    if output.format.for_people:
        output.line(f"topic {done.topic}; live: {_ids(done.live)}; down: {_ids(done.absent)}. Try:")
        for command in done.try_next:
            output.line(f"  {command}")


@app.command()
@with_output(exits=_NO_LAB)
def kill(output: Output, brokers: Brokers, *, directory: Directory = None) -> None:
    """Kill brokers with SIGKILL.

    Examples:
      kelr lab kill 2 3
    """
    lab = _open(directory)
    for broker in brokers:
        lab.kill(broker)
        output.note(f"killed broker {broker}")


@app.command()
@with_output(exits=_NO_LAB)
def stop(output: Output, brokers: Brokers, *, directory: Directory = None) -> None:
    """Shut brokers down cleanly with SIGTERM, one after the other.

    Examples:
      kelr lab stop 2
    """
    lab = _open(directory)
    for broker in brokers:
        lab.stop(broker)
        output.note(f"stopped broker {broker}")


@app.command()
@with_output(exits=_NO_LAB)
def start(output: Output, brokers: Brokers, *, directory: Directory = None) -> None:
    """Start brokers that are down, and wait until they are unfenced.

    Examples:
      kelr lab start 1
    """
    lab = _open(directory)
    for broker in brokers:
        lab.start(broker, wait=False)
    lab.wait_unfenced(*brokers)
    output.note(f"started {_ids(brokers)}")


@app.command()
@with_output(exits=_NO_LAB)
def restore(output: Output, *, directory: Directory = None) -> None:
    """Start every node that is down, and wait until partitions have leaders again.

    Examples:
      kelr lab restore
    """
    lab = _open(directory)
    for address in lab.restore():
        output.note(f"{address} stays without a leader: only an unclean election helps it")
    _show(output, lab)


@app.command()
@with_output(exits=_NO_LAB)
def env(output: Output, *, directory: Directory = None) -> None:
    """Print what to export, so that kelr and this shell talk to the lab.

    Examples:
      eval "$(kelr lab env)"
    """
    from kelr.lab.state import default_directory  # noqa: PLC0415 - not for --help
    from kelr.view.lab import environment_view  # noqa: PLC0415

    lab = _open(directory)
    variables = [("KELR_BOOTSTRAP_SERVER", lab.bootstrap_servers)]
    if lab.directory != default_directory().absolute():
        variables.append(("KELR_LAB_DIR", str(lab.directory)))
    with output.listing(environment_view()) as listing:
        listing.add(variables)


@app.command()
@with_output(exits=_NO_LAB)
def down(
    output: Output,
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
    from kelr.lab import down as end  # noqa: PLC0415 - not for --help
    from kelr.lab.state import default_directory  # noqa: PLC0415

    place = directory or default_directory()
    end(place, keep_data=keep_data, force=force)
    output.note(
        f"the lab has ended; its data is in {place}" if keep_data else "the lab has ended; nothing is left of it"
    )


def _open(directory: Path | None) -> Lab:
    from kelr.lab import Lab  # noqa: PLC0415 - not for --help
    from kelr.lab.state import default_directory  # noqa: PLC0415

    return Lab.open(directory or default_directory())


def _show(output: Output, lab: Lab) -> None:
    from kelr.view.lab import status_view  # noqa: PLC0415 - not for --help

    status = lab.status()
    head: dict[str, Json] = {
        "directory": str(status.directory),
        "kafka": status.kafka,
        "cluster_id": status.cluster_id,
        "bootstrap_servers": status.bootstrap_servers,
        "elr": status.elr,
        "min_isr": status.min_isr,
        "ready": status.ready,
    }
    if output.format.for_people:
        elr = "ELR on" if status.elr else "ELR off"
        output.line(f"Kafka {status.kafka}, {elr}, min ISR {status.min_isr}, in {status.directory}")
        output.line(f"bootstrap servers: {status.bootstrap_servers}")
    with output.listing(status_view(), head) as listing:
        listing.add(status.nodes)
    if not status.ready:
        output.note("this lab is starting, or was killed while it did; 'kelr lab down' ends it")


def _next(output: Output, lab: Lab, *arguments: str) -> None:
    from kelr.lab.state import default_directory  # noqa: PLC0415 - not for --help

    elsewhere = lab.directory != default_directory().absolute()
    output.next([*arguments, *(("--dir", str(lab.directory)) if elsewhere else ())])


def _ids(brokers: Sequence[int]) -> str:
    return ", ".join(map(str, brokers)) or "none"
