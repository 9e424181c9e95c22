"""A controller quorum that has lost its majority: its copies collected, compared and, from the best one, made to lead.

`copies` and `assess` are pure: copies as values, which one is best, what is proved of it, what choosing each would do.
`collect` reads nodes' directories into one file, and `reading` makes copies of such files again.
"""
