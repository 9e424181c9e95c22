"""Logins that take more than a name and a password: OAuth tokens, Kerberos, and key stores in Java's forms."""

NO_TICKET = "no Kerberos ticket"
"""How the words of a login's error begin where it was not the broker who refused."""
