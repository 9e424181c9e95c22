"""Where kelr's knowledge comes from: live clusters, snapshot files, brokers' disks; all answer as one `Source`."""
