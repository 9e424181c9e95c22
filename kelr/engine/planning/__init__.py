"""From decisions to a plan, and from a plan to what still holds of it; pure.

`plan_of` makes the plan, `differences` compares one of its elections with the state of now, `stock_files` writes it for
Kafka's own tools.
"""
