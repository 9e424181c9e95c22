#!/usr/bin/env python3
"""kelr watch --on-change docs/alerts/slack.py: a message for each change, with what to do.

SLACK_WEBHOOK holds the address of an incoming webhook. Python's standard library is enough.
"""

import json
import os
import sys
import urllib.request

alert = json.load(sys.stdin)
mark = {"trouble": ":red_circle:", "healthy": ":large_green_circle:"}.get(alert["state"], ":grey_question:")
lines = [f"{mark} *{alert['watched']}* {' '.join(alert['partitions'][:3])} {alert['situation'] or ''}", alert["text"]]
if alert["advice"] is not None:
    lines += [f"*Do:* {alert['do']}", f"{alert['advice_of']}: {alert['advice']['text']}"]
elif alert["advice_unknown"] is not None:
    lines.append(f"*Do:* not known: {alert['advice_unknown']}")
lines += [f"`{alert['explain']}`"] if alert["explain"] else []
lines += [alert["runbook"]] if alert["runbook"] else []
lines += [f"({alert['not_delivered']} changes before this one did not reach Slack)"] if alert["not_delivered"] else []
text = "\n".join(lines).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
request = urllib.request.Request(
    os.environ["SLACK_WEBHOOK"], json.dumps({"text": text}).encode(), {"Content-Type": "application/json"}
)
try:
    with urllib.request.urlopen(request, timeout=10):
        pass
except OSError as error:  # without a traceback, which may quote the address
    sys.exit(f"Slack: {type(error).__name__} {getattr(error, 'code', '')}")
