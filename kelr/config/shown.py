"""Which client properties may be shown: those that are known to hold no secret, and no others.

Kafka's types of its client configs tell (ConfigDef.Type.PASSWORD is hidden there too); a key that is not known may be
anything, so its value is hidden.
"""

from __future__ import annotations

import re

HIDDEN = "(hidden)"

_HARMLESS = re.compile(
    r"""
      bootstrap\.(servers|controllers) | client\.(id|rack|dns\.lookup) | security\.(protocol|providers) | .*\.(ms|bytes)
    | sasl\.mechanism | sasl\.client\.callback\.handler\.class | sasl\.login\.(class|callback\.handler\.class)
    | sasl\.login\.refresh\..* | sasl\.kerberos\..*
    | sasl\.oauthbearer\.(.*\.url|scope|scope\.claim\.name|sub\.claim\.name|expected\..*)
    | sasl\.oauthbearer\.client\.credentials\.client\.id
    | ssl\.(ca|certificate|key|keystore|truststore)\.location | ssl\.(keystore|truststore)\.type
    | ssl\.(protocol|enabled\.protocols|cipher\.suites|provider|keymanager\.algorithm|trustmanager\.algorithm)
    | ssl\.(endpoint\.identification\.algorithm|engine\.factory\.class|secure\.random\.implementation)
    | config\.providers | config\.providers\.[^.]+\.class
    | config\.providers\.[^.]+\.param\.(allowed\.paths|allowlist\.pattern)
    | enable\.metrics\.push | retries | metric\.reporters | metrics\..*
    """,
    re.VERBOSE,
)
_LOGIN_IN_URL = re.compile(r"://[^/@\s]*@")


def may_be_shown(key: str, value: str) -> bool:
    """Whether the value of a property is known to be no secret."""
    return _HARMLESS.fullmatch(key) is not None and not _LOGIN_IN_URL.search(value) and "?" not in value


def shown_value(key: str, value: str) -> str:
    """The value, or ``(hidden)``."""
    return value if may_be_shown(key, value) else HIDDEN
