#!/usr/bin/env python3
"""kelr watch --on-change docs/alerts/pagerduty.py: one incident for each cluster, which ends when all is well.

PAGERDUTY_KEY holds the integration's routing key (Events API v2). Python's standard library is enough.
"""

import json
import os
import sys
import urllib.request

URL = os.environ.get("PAGERDUTY_URL", "https://events.pagerduty.com/v2/enqueue")

alert = json.load(sys.stdin)
event = {
    "routing_key": os.environ["PAGERDUTY_KEY"],
    # Only "healthy" ends an incident: where nothing could be read, the state is "unknown".
    "event_action": "resolve" if alert["state"] == "healthy" else "trigger",
    "dedup_key": f"kelr/{alert['cluster_id'] or alert['watched']}",
    "payload": {
        "summary": " ".join([*alert["partitions"][:3], alert["situation"] or "", alert["text"]])[:1024],
        "source": alert["watched"],
        "severity": "critical" if alert["state"] == "trouble" else "warning",
        "custom_details": alert,
    },
    "links": [{"href": alert["runbook"], "text": "runbook"}] if "://" in (alert["runbook"] or "") else [],
}
request = urllib.request.Request(URL, json.dumps(event).encode(), {"Content-Type": "application/json"})
with urllib.request.urlopen(request, timeout=10):
    pass  # any status but 2xx raises, kelr tells of it, and tries again
