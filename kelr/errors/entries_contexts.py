"""Codes of named clusters and their secrets."""

from __future__ import annotations

from kelr.errors import ExitCode
from kelr.errors.entry import Entry

CONTEXTS = (
    Entry(
        "context-unknown",
        ExitCode.USAGE,
        "There is no context of that name",
        "The file of contexts has no such table; the message says which it has, or that there is no such file.",
        "A slip in --context or KELR_CONTEXT, another KELR_CONFIG_DIR than the one where it was added, or a current"
        " context whose table was taken out by hand.",
        "`kelr context list` shows them; `kelr context add` makes one.",
    ),
    Entry(
        "context-exists",
        ExitCode.USAGE,
        "There is a context of that name already",
        "It is as it was.",
        "It was added before, perhaps for another cluster.",
        "Choose another name, or --force to replace it.",
    ),
    Entry(
        "no-current-context",
        ExitCode.USAGE,
        "No context is the current one",
        "A command that is about one context was given none, and there is none that stands for it.",
        "`kelr context use` was never called, or the current context was removed.",
        "Name one, or choose one with `kelr context use NAME`.",
    ),
    Entry(
        "context-read-only",
        ExitCode.REFUSED,
        "The context forbids changes",
        "It has read_only = true; nothing was asked of the cluster that could change it.",
        "Whoever wrote the context wants nobody to change this cluster by accident.",
        "Use the context that is meant for changes, or take read_only out if you may decide that.",
    ),
    Entry(
        "contexts-not-private",
        ExitCode.REFUSED,
        "Others can read a secret of the contexts, or write a command into them",
        "The file holds a password in clear and others may read it, or it names a command that kelr would run and"
        " others may write it. Nothing of it was used.",
        "The file was copied or made with a mode that lets the group or everybody in.",
        "Run the chmod that the message names, and change a password that others could read.",
    ),
    Entry(
        "secret-not-there",
        ExitCode.USAGE,
        "A secret is not where it should be",
        "The variable is not set, the file cannot be read or is empty, or the command printed nothing. No cluster and"
        " no endpoint was asked.",
        "A shell without the variable of another one, or a file or an entry that was moved.",
        "Put the secret there; `kelr context show NAME` says where it is looked for.",
    ),
    Entry(
        "not-a-secret",
        ExitCode.USAGE,
        "What is there cannot be a password or a token",
        "It has several lines, a control character, bytes that are no text, or more of them than a secret has. Nothing"
        " of it was used, and the message quotes none of it.",
        "Another file was named, or the entry of a password store has more in it than the password.",
        "Name what holds the secret and nothing else; a line end at its end is left out.",
    ),
    Entry(
        "login-incomplete",
        ExitCode.USAGE,
        "The context has a user name, and not all that a login takes",
        "A user name is of use only with a security.protocol that logs in, a mechanism that takes names, and a"
        " password; and it says the same as sasl.jaas.config, so that only one of them may be there.",
        "The context was written by hand, or the properties that it had before were taken out.",
        "Add what the message names to the context's table.",
    ),
    Entry(
        "contexts-garbled",
        ExitCode.USAGE,
        "The file of contexts is not as it should be",
        "The message names the line, or the context and its key. Nothing of that context was used, and the file was"
        " left as it was.",
        "A slip while it was edited, or a key of a newer kelr.",
        "Correct the place; docs/contexts.md has every key.",
    ),
    Entry(
        "contexts-not-editable",
        ExitCode.USAGE,
        "The file of contexts is valid, and written in a way that kelr does not change",
        "kelr changes tables such as [contexts.prod] and keeps everything else as it stands. Nothing was written.",
        "A context stands in one line, as dotted keys, or in pieces between other tables.",
        "Change it by hand, or write the context as a table of its own first.",
    ),
    Entry(
        "contexts-changed",
        ExitCode.USAGE,
        "Somebody else changed the file of contexts meanwhile",
        "It is as the other one wrote it; nothing was written over it.",
        "Another kelr, or an editor, at the same moment.",
        "Run the command again.",
    ),
    Entry(
        "secret-command-failed",
        ExitCode.USAGE,
        "The command that gives a secret failed",
        "It could not be run, ended with an error, took too long, or printed what cannot be a secret. What it wrote to"
        " stderr is in the message; what it printed is not.",
        "A password store that is locked, a program that is not on the PATH, or a wrong entry in the command.",
        "Run the command by hand, on a terminal if it asks for a pass phrase.",
    ),
)
