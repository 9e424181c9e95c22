"""A login that did not come about, in words: the one place that tells whose fault it is, and what to do."""

from __future__ import annotations

import re

from kelr.errors import AuthenticationError
from kelr.sources.live.transport import Failure
from kelr.sources.security import NO_TICKET

_JUDGED_A_TICKET = re.compile(r"SASL (mechanism )?GSSAPI")
"""In the words of brokers (SaslServerAuthenticator)."""


def login_error(who: str, failure: Failure, *, also: str = "") -> AuthenticationError:
    """The error for a failure of the kind `FailureKind.AUTHENTICATION`.

    Args:
        who: who was to be logged in to, such as ``the brokers``.
        also: what else there is to say, at the end of the message.
    """
    if failure.detail.startswith(NO_TICKET):
        why = failure.detail.removeprefix(NO_TICKET)
        return AuthenticationError(
            f"{NO_TICKET} for {who}{why}{also}",
            next_step="klist shows what tickets there are: run kinit PRINCIPAL, or kinit -kt KEYTAB PRINCIPAL, if they"
            " ended; else check the names of the brokers, and that the KDC answers",
            code="no-kerberos-ticket",
        )
    return AuthenticationError(
        f"{who} refused the credentials: {failure.detail}{also}",
        next_step="klist shows whose tickets there are; check sasl.kerberos.service.name, and that the broker's key"
        " table has a principal with the name that it was reached by"
        if _JUDGED_A_TICKET.search(failure.detail)
        else "check user name, password and sasl.mechanism: kelr config show says where they come from",
        code="credentials-refused",
    )
