"""How a lab's brokers tell their clients apart: a listener of its own for clients, certificates, users, an authorizer.

What the lab does itself, brokers among themselves included, goes over another listener, in the clear on 127.0.0.1.
"""
