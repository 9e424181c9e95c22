"""``kelr lab``: status, incident, restore, env, down; the other commands are in modules beside this one."""

from __future__ import annotations

from typing import Annotated

import typer

from kelr.commands import complete, lab_nodes, lab_up
from kelr.commands.lab_parts import NO_LAB, Directory, ids, opened, show
from kelr.commands.options import on_this_machine, open_output

_whole = typer.Typer()
app = typer.Typer(
    add_completion=False,
    help="Run a real or simulated cluster, and incidents on it.",
    no_args_is_help=True,
)


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


for _part in (lab_up.app, _whole, lab_nodes.app):
    app.add_typer(_part)
