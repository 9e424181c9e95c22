"""``kelr lab``: kill, stop, start, pause, resume; on simulated labs partition, heal, fault, deny, allow, advance."""

from __future__ import annotations

from typing import Annotated

import typer

from kelr.commands.lab_parts import (
    NO_LAB,
    ONLY_SIMULATED,
    Brokers,
    Directory,
    ids,
    node_of,
    node_text,
    opened,
    others,
    simulated,
)
from kelr.commands.options import on_this_machine, open_output
from kelr.errors import UsageError
from kelr.model.numbers import MAX_INT32, whole_number

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
        lab.start_controller(*(node for node in brokers if node not in found))
    for broker in found:
        lab.start(broker, wait=False)
    lab.wait_unfenced(*found)
    output.note(f"started {ids(brokers)}")


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


# ``kelr lab`` on simulated labs: partition, heal, fault, deny, allow, advance.


Nodes = Annotated[
    list[str],
    typer.Argument(metavar="NODE NODE", help="Two nodes: ids of brokers, or 'controller'.", show_default=False),
]
SomeNodes = Annotated[
    list[str] | None,
    typer.Argument(metavar="NODE NODE", help="Two nodes; every link without them.", show_default=False),
]
Operation = Annotated[
    str, typer.Argument(metavar="OPERATION", help="As ACLs name it: DESCRIBE, READ, ALTER, ...", show_default=False)
]
Topic = Annotated[
    str | None, typer.Option("--topic", metavar="NAME", help="On this topic; '*' stands for every topic.")
]
_AMOUNTS = {
    "delay": "milliseconds",
    "truncate": "bytes",
    "error": "the number or name of an error of Kafka",
    "slow": "bytes a second",
}
_WITHOUT_AMOUNT = ("drop", "lose", "close")


@app.command(**on_this_machine(ONLY_SIMULATED))
def partition(ctx: typer.Context, nodes: Nodes, *, directory: Directory = None) -> None:
    """Cut the network between two nodes; simulated labs only.

    Clients still reach both. Between brokers no records flow; a broker that
    does not reach the controller is fenced when its session ends.

    Examples:
      kelr lab partition 1 2
      kelr lab partition 3 controller
    """
    output = open_output(ctx)
    lab = simulated(directory, "partition")
    one, other = _two(nodes)
    first, second = node_of(lab, one), node_of(lab, other)
    lab.sever(first, second)
    output.note(f"{node_text(lab, first)} and {node_text(lab, second)} do not reach each other")


@app.command(**on_this_machine(ONLY_SIMULATED))
def heal(ctx: typer.Context, nodes: SomeNodes = None, *, directory: Directory = None) -> None:
    """Make links between nodes whole again; simulated labs only.

    Examples:
      kelr lab heal
      kelr lab heal 1 2
    """
    output = open_output(ctx)
    lab = simulated(directory, "heal")
    if not nodes:
        lab.heal()
        output.note("every node reaches every other")
        return
    one, other = _two(nodes)
    first, second = node_of(lab, one), node_of(lab, other)
    lab.heal(first, second)
    output.note(f"{node_text(lab, first)} and {node_text(lab, second)} reach each other")


@app.command(**on_this_machine(ONLY_SIMULATED))
def fault(
    ctx: typer.Context,
    kind: Annotated[
        str | None,
        typer.Argument(
            metavar="KIND",
            help="delay, drop, lose, close, garble, truncate, error or slow.",
            show_default=False,
        ),
    ] = None,
    amount: Annotated[
        str | None,
        typer.Argument(
            metavar="AMOUNT",
            help="Milliseconds, bytes, an error's number or name, or bytes a second: see above.",
            show_default=False,
        ),
    ] = None,
    *,
    node: Annotated[
        str | None, typer.Option("--node", metavar="NODE", help="At this node only: a broker's id, or 'controller'.")
    ] = None,
    api: Annotated[
        str | None, typer.Option("--api", metavar="NAME", help="For this request only, such as Metadata.")
    ] = None,
    skip: Annotated[int, typer.Option("--skip", metavar="N", help="Let so many requests pass first.")] = 0,
    times: Annotated[
        int | None, typer.Option("--times", metavar="N", help="Strike so many requests (default: all).")
    ] = None,
    clear: Annotated[bool, typer.Option("--clear", help="Take every fault away.")] = False,
    directory: Directory = None,
) -> None:
    """Let requests to a simulated lab go wrong from now on.

      delay MS      the answer comes later
      drop          the request is carried out, and no answer comes
      lose          it is not carried out, and no answer comes
      close         it is not carried out, and the connection ends
      garble        the answer is noise
      truncate N    the answer ends after N bytes, and the connection with it
      error ERROR   not carried out; every error code of the answer is this
      slow N        the answer comes with N bytes a second

    The first fault that fits a request strikes it. `kelr lab status` lists them.

    Examples:
      kelr lab fault delay 5000 --node 2
      kelr lab fault drop --api ElectLeaders --times 1
      kelr lab fault error NOT_CONTROLLER --api ElectLeaders
      kelr lab fault --clear
    """
    output = open_output(ctx)
    lab = simulated(directory, "fault")
    if kind is None and not clear:
        raise UsageError("which fault?", next_step="kelr lab fault --help lists them")
    number = 0 if kind is None else _amount(kind, amount)
    at = None if node is None else node_of(lab, node)
    if kind is None:
        lab.no_faults()
        output.note("no faults are left")
        return
    lab.fault(kind, number, node=at, api=api, skip=skip, times=times, alone=clear)
    if clear:
        output.note("the other faults are gone")
    where = "" if at is None else f" at {node_text(lab, at)}"
    output.note(f"{kind} strikes {api or 'every request'}{where}")


@app.command(**on_this_machine(ONLY_SIMULATED))
def deny(ctx: typer.Context, operation: Operation, *, topic: Topic = None, directory: Directory = None) -> None:
    """Forbid clients of a simulated lab an operation, on the cluster or on topics.

    Examples:
      kelr lab deny ALTER
      kelr lab deny READ --topic orders
      kelr lab deny DESCRIBE --topic '*'
    """
    output = open_output(ctx)
    lab = simulated(directory, "deny")
    lab.deny(*_resource(operation, topic))
    output.note(f"clients may not {operation.upper()} {_of(topic)}")


@app.command(**on_this_machine(ONLY_SIMULATED))
def allow(
    ctx: typer.Context,
    operation: Annotated[
        str | None,
        typer.Argument(metavar="OPERATION", help="What was denied; everything without it.", show_default=False),
    ] = None,
    *,
    topic: Topic = None,
    directory: Directory = None,
) -> None:
    """Allow clients of a simulated lab again what `kelr lab deny` forbade.

    Examples:
      kelr lab allow
      kelr lab allow READ --topic orders
    """
    output = open_output(ctx)
    lab = simulated(directory, "allow")
    if operation is None:
        if topic is not None:
            raise UsageError("which operation on the topic?", next_step="kelr lab allow READ --topic NAME")
        lab.allow()
        output.note("clients may do everything")
        return
    lab.allow(*_resource(operation, topic))
    output.note(f"clients may {operation.upper()} {_of(topic)}")


@app.command(**on_this_machine(ONLY_SIMULATED))
def advance(
    ctx: typer.Context,
    milliseconds: Annotated[int, typer.Argument(metavar="MS", help="How far, in milliseconds.", show_default=False)],
    *,
    directory: Directory = None,
) -> None:
    """Turn the clock of a simulated lab that was started with --virtual-clock.

    Examples:
      kelr lab advance 3000
    """
    output = open_output(ctx)
    lab = simulated(directory, "advance")
    lab.advance(milliseconds)
    output.note(f"{milliseconds} ms have passed")


def _amount(kind: str, given: str | None) -> int:
    """The number; for an error its name does, too; 0 where the kind goes without."""
    name = kind.lower()
    if given is None:
        if name in _AMOUNTS:
            raise UsageError(f"{kind} needs an amount: {_AMOUNTS[name]}", next_step=f"kelr lab fault {kind} 100")
        return 0
    if name in _WITHOUT_AMOUNT:
        raise UsageError(f"{kind} takes no amount", next_step=f"kelr lab fault {kind} --times N strikes N requests")
    amount = whole_number(given, MAX_INT32)
    if amount is not None:
        return amount
    if name == "error":
        from kelr.lab.simulated.api import code  # noqa: PLC0415 - loads the simulated cluster

        try:
            return code(given.upper())
        except KeyError:
            raise UsageError(f"Kafka has no error {given}", next_step="give its number, or a name") from None
    raise UsageError(f"the amount of {kind} is {given!r}, and no whole number", next_step=f"kelr lab fault {kind} 100")


def _two(nodes: list[str]) -> tuple[str, str]:
    if len(nodes) != 2:
        raise UsageError(f"a link has two ends, and {len(nodes)} were given", next_step="kelr lab partition 1 2")
    return nodes[0], nodes[1]


def _resource(operation: str, topic: str | None) -> tuple[str, str, str | None]:
    """Kind of resource, operation, and name; None stands for every resource of the kind."""
    if topic is None:
        return "cluster", operation, None
    return "topic", operation, None if topic == "*" else topic


def _of(topic: str | None) -> str:
    if topic is None:
        return "the cluster"
    return "any topic" if topic == "*" else f"topic {topic}"
