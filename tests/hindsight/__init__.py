"""Every claim that kelr makes against what then happened: `make hindsight` (docs/hindsight.md)."""
