"""The page for an incident's review: from what is known of it to HTML, and to Markdown for a chat channel.

`material` is what there is, `losses` what was lost and how sure that is, `kinds` puts partitions that stand alike
together, `happenings` and `bands` tell the time, `log_drawing` draws logs, `summary` and `tables` make words and cells
of it, and `pages` and `chat` write.
"""
