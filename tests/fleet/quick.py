"""How Java runs Spark for a handful of rows."""

QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m"
"""Code is compiled once and simply. Java would then keep room for 48 MB of it, which Spark fills in a long run: it
throws code away, and interprets the rest."""
