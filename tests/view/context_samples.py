"""What ``kelr context`` and ``kelr config`` print, and what is rare in it: not set, not told, hidden."""

from __future__ import annotations

from kelr.view.contexts import (
    ContextRow,
    SettingRow,
    Tested,
    contexts_view,
    settings_view,
    tested_view,
)
from tests.view.printing import Printed, listed

CONTEXTS = (
    ContextRow("prod", True, "kafka-1:9093", "SASL_SSL PLAIN as žofie", None, "4L6g3nShT-eMCtK--X86sw", True, 4),
    ContextRow("file", False, None, None, "/etc/kafka/client.properties", None, False, None, "it has nope"),
)
SETTINGS = (
    SettingRow("bootstrap_server", "kafka-1:9093", "KELR_BOOTSTRAP_SERVER"),
    SettingRow("ssl.key.password", None, "contexts.toml, line 7", hidden=True),
    SettingRow("cluster_id", None, "default"),
)
TOLD = Tested("prod", "k:1", "c", True, 3, 2, 1, 30, "4.3", True, {"kraft.version": 1}, "SSL", 12, "4.3")
UNTOLD = Tested("old", "k:1", None, False, 1, 1, None, None, None, None, None, "PLAINTEXT", 3)
CONTEXT_SAMPLES: dict[str, Printed] = {
    "contexts": listed(contexts_view(), CONTEXTS, {"file": "contexts.toml"}, {}),
    "context": listed(settings_view("context"), SETTINGS, {}, {}),
    "config": listed(settings_view("config"), SETTINGS, {}, {}),
    "context-test": listed(tested_view(), (TOLD, UNTOLD), {}, {"next": "kelr describe"}),
}
