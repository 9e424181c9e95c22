"""The live cluster: requests out, kelr's values in. `network` alone touches sockets; see docs/requests.md."""

from kelr.sources.live.source import LiveSource

__all__ = ["LiveSource"]
