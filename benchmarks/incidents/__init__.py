"""Random incidents on real Kafka, each recovered in several ways from the very same disks, with every record counted.

    python -m benchmarks.incidents --seed 966 --rounds 5

`chaos` writes a script from the seed; `play` makes it happen and writes down every record that was
acknowledged; `frozen` keeps the disks, and gives each way of recovery the same bytes and the same restarts; `policies`
has the ways; `disks` and `count` say what is left, without any of kelr's own code; `report` makes the table.
"""
