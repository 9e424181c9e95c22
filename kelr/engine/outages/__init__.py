"""What outages make of many partitions: which lose their leader, fall under min ISR, or may lose what was committed.

`case` takes the names out of a partition, `fate` leads the controller's state machine through an outage of one case,
`reading` recognizes the cases of many partitions, `tally` counts what becomes of them, `worst` looks for the worst sets
of brokers, and `restarts` for an order in which all brokers can be restarted.
"""
