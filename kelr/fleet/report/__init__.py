"""The report on a fleet: what to fix first, with figures, plots and the commands that fix it.

`figures` are the sums that the lake is asked for (`sums` asks), `findings` makes of them what to fix first,
`plots` draws, and `pages` writes HTML and Markdown; `written` puts it all into a folder, with the tables behind it.
"""
