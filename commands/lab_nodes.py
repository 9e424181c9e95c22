"""``kelr lab``: kill, stop, start; on simulated labs lose-cache, flush, expire, pause, resume."""

from __future__ import annotations

from typing import Annotated

import typer

from kelr.commands.lab_parts import NO_LAB, ONLY_SIMULATED, Brokers, Directory, ids, opened, others, simulated
from kelr.commands.options import on_this_machine, open_output

app = typer.Typer(add_completion=False)


@app.command(**on_this_machine(NO_LAB))
def kill(
    ctx: typer.Context,
    brokers: Brokers,
    *,
    power_loss: Annotated[
        bool,
        typer.Option("--power-loss", help="Their machines' page caches are lost too; on a simulated lab only."),
    ] = False,
    directory: Directory = None,
) -> None:
    """Kill brokers with SIGKILL, or controllers where there are several.

    Examples:
      kelr lab kill 2 3
      kelr lab kill 100
    """
    output = open_output(ctx)
    if power_loss:
        rehearsal = simulated(directory, "--power-loss")
        for broker in brokers:
            rehearsal.kill(broker, power_loss=True)
            output.note(f"broker {broker} lost its power, and what it had not flushed")
        return
    lab = opened(directory)
    controllers = others(lab)
    for node in brokers:
        if node in controllers:
            lab.kill_controller(node)
        else:
            lab.kill(node)
        output.note(f"killed {'controller' if node in controllers else 'broker'} {node}")


@app.command(**on_this_machine(NO_LAB))
def stop(ctx: typer.Context, brokers: Brokers, *, directory: Directory = None) -> None:
    """Shut brokers down cleanly with SIGTERM, one after the other.

    Examples:
      kelr lab stop 2
    """
    output = open_output(ctx)
    lab = opened(directory)
    for broker in brokers:
        lab.stop(broker)
        output.note(f"stopped broker {broker}")


@app.command(**on_this_machine(NO_LAB))
def start(ctx: typer.Context, brokers: Brokers, *, directory: Directory = None) -> None:
    """Start brokers that are down, and wait until they are unfenced.

    Examples:
      kelr lab start 1
    """
    output = open_output(ctx)
    lab = opened(directory)
    found = [broker for broker in brokers if broker not in others(lab)]
    if len(found) < len(brokers):
        lab.start_controller()
    for broker in found:
        lab.start(broker, wait=False)
    lab.wait_unfenced(*found)
    output.note(f"started {ids(brokers)}")


@app.command(**on_this_machine(ONLY_SIMULATED))
def lose_cache(ctx: typer.Context, brokers: Brokers, *, directory: Directory = None) -> None:
    """Take away what brokers have not flushed, as a power loss does (simulated).

    A broker that runs dies of it. One that was stopped cleanly has flushed
    everything and loses nothing.

    Examples:
      kelr lab lose-cache 2
    """
    output = open_output(ctx)
    lab = simulated(directory, "lose-cache")
    for broker in brokers:
        lab.lose_cache(broker)
        output.note(f"broker {broker} lost what it had not flushed")


@app.command(**on_this_machine(ONLY_SIMULATED))
def flush(ctx: typer.Context, brokers: Brokers, *, directory: Directory = None) -> None:
    """Have brokers write everything to their disks; simulated labs only.

    Examples:
      kelr lab flush 1 2 3
    """
    output = open_output(ctx)
    lab = simulated(directory, "flush")
    for broker in brokers:
        lab.flush(broker)
        output.note(f"broker {broker} has flushed its logs")


@app.command(**on_this_machine(ONLY_SIMULATED))
def expire(ctx: typer.Context, brokers: Brokers, *, directory: Directory = None) -> None:
    """Have the controller give brokers up now, not when their sessions end.

    A broker that is well is unfenced again with its next heartbeat.

    Examples:
      kelr lab expire 2
    """
    output = open_output(ctx)
    lab = simulated(directory, "expire")
    for broker in brokers:
        lab.expire(broker)
        output.note(f"the controller has fenced broker {broker}")


@app.command(**on_this_machine(NO_LAB))
def pause(ctx: typer.Context, brokers: Brokers, *, directory: Directory = None) -> None:
    """Let brokers stand still (SIGSTOP): connections stay, no answer comes back.

    Examples:
      kelr lab pause 2
    """
    output = open_output(ctx)
    lab = opened(directory)
    for broker in brokers:
        lab.pause(broker)
        output.note(f"broker {broker} stands still")


@app.command(**on_this_machine(NO_LAB))
def resume(ctx: typer.Context, brokers: Brokers, *, directory: Directory = None) -> None:
    """Let brokers that stand still go on.

    Examples:
      kelr lab resume 2
    """
    output = open_output(ctx)
    lab = opened(directory)
    for broker in brokers:
        lab.go_on(broker)
        output.note(f"broker {broker} goes on")
