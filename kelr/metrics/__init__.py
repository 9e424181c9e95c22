"""Kafka's own gauges beside kelr's figures, and kelr's figures as gauges of its own.

`reading` asks endpoints (Prometheus text, a Prometheus server, Jolokia), `computed` counts on the cluster, `figures`
sets the one against the other; `watching` and `exporter` serve what kelr counts.
"""
