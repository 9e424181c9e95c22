"""A cluster inside kelr that speaks Kafka's protocol on ports of 127.0.0.1: a server to rehearse and to test with.

`world` holds the cluster, `handlers` answer requests about it, `server` listens. It has what no release of Kafka has:
the whole of KIP-966. `docs/simulated-lab.md` says what it does not do.
"""
